package audio

import "math"

// renderAmbient draws one background. Frequencies lie where a telephone still
// carries them: a rumble at 60 Hz would only be heard by nobody.
func renderAmbient(sound AmbientSound, rate Rate, seed uint64) []int16 {
	c := newAmbientCanvas(rate, seed, sound)
	switch sound {
	case AmbientOffice:
		c.office()
	case AmbientCity:
		c.city()
	case AmbientForest:
		c.forest()
	case AmbientCrowdedRoom:
		c.crowd(16, 1)
		c.bed(150, 900, 0.25, nil)
	case AmbientCafe:
		c.cafe()
	case AmbientNature:
		c.nature()
	}
	return c.finish()
}

// office is air conditioning, typing in bursts, now and then a telephone far off
// and somebody talking behind a wall.
func (c *ambientCanvas) office() {
	c.bed(80, 420, 1, c.swell(0.9, 1.1, 3))
	c.bed(300, 1600, 0.22, nil)
	c.scatter(3.5, func(at float64) {
		for range 6 + c.rng.IntN(14) {
			at += c.between(0.07, 0.22)
			tone := c.between(1500, 2600)
			c.puff(at, 0.012, 1200, 3600, c.between(2, 5))
			c.strike(at, c.between(1, 3), 0.004, tone, tone*1.37)
		}
	})
	c.scatter(12, func(at float64) {
		for ring := range 2 {
			c.ring(at+3*float64(ring), 1.1, 0.22)
		}
	})
	c.crowd(2, 0.18)
}

// ring is an electronic telephone: two tones that take turns.
func (c *ambientCanvas) ring(at, length, gain float64) {
	c.event(at, length, func(s float64) float64 {
		f := 1050.0
		if int(s*20)%2 == 1 {
			f = 1320
		}
		edge := math.Min(1, math.Min(s, length-s)/0.02)
		return gain * edge * math.Sin(2*math.Pi*f*s)
	})
}

// city is a rumble, cars that pass, and a horn.
func (c *ambientCanvas) city() {
	c.bed(60, 260, 1, c.swell(0.7, 1.2, 2, 5))
	c.bed(200, 1100, 0.35, c.swell(0.5, 1, 3, 7))
	c.scatter(3, func(at float64) {
		length := c.between(2.5, 5)
		c.puff(at, length, 180, c.between(600, 1300), c.between(0.7, 1.8))
	})
	c.scatter(8, func(at float64) {
		pitch, length := c.between(330, 430), c.between(0.25, 0.7)
		c.event(at, length, func(s float64) float64 {
			edge := math.Min(1, math.Min(s, length-s)/0.03)
			var sum float64
			for h := 1.0; h <= 5; h++ {
				sum += (math.Sin(2*math.Pi*pitch*h*s) + math.Sin(2*math.Pi*1.26*pitch*h*s)) / h
			}
			return 0.35 * edge * sum
		})
	})
}

// forest is wind in leaves, and birds.
func (c *ambientCanvas) forest() {
	c.bed(250, 900, 0.4, c.swell(0.2, 1, 2, 3, 7))
	c.bed(1500, 3600, 0.45, c.swell(0.1, 1, 3, 5, 8))
	c.scatter(1.1, func(at float64) {
		from, gain := c.between(2000, 2900), c.between(0.8, 2.2)
		bend, length := c.between(-500, 500), c.between(0.06, 0.16)
		for range 2 + c.rng.IntN(5) {
			c.chirp(at, length, from, bend, gain)
			at += length + c.between(0.03, 0.09)
		}
	})
}

// chirp is a note that slides.
func (c *ambientCanvas) chirp(at, length, from, bend, gain float64) {
	c.event(at, length, func(s float64) float64 {
		phase := from*s + bend*s*s/(2*length)
		return gain * math.Sin(math.Pi*s/length) * math.Sin(2*math.Pi*phase)
	})
}

// cafe is a few tables talking, cups, and the steam of the machine.
func (c *ambientCanvas) cafe() {
	c.crowd(5, 0.8)
	c.bed(200, 1800, 0.3, nil)
	c.scatter(0.9, func(at float64) {
		tone := c.between(1900, 3000)
		for range 1 + c.rng.IntN(3) {
			c.strike(at, c.between(0.8, 2.4), c.between(0.02, 0.06), tone, tone*1.18, tone*0.71)
			at += c.between(0.08, 0.25)
		}
	})
	c.scatter(9, func(at float64) {
		c.puff(at, c.between(1.5, 3), 1400, 3600, c.between(0.8, 1.4))
	})
}

// nature is a brook, crickets, and a slow wind.
func (c *ambientCanvas) nature() {
	c.bed(120, 500, 0.5, c.swell(0.3, 1, 1, 3))
	c.bed(700, 2600, 0.5, c.swell(0.8, 1, 5, 11))
	c.scatter(0.045, func(at float64) { // bubbles: short notes that rise
		from := c.between(500, 1400)
		c.chirp(at, c.between(0.02, 0.06), from, from*0.5, c.between(0.15, 0.8))
	})
	pulses := 22.0 // a second, in trains of five
	c.bed(3000, 3300, 0.9, func(s float64) float64 {
		beat := math.Mod(s*pulses, 11)
		if beat > 5 {
			return 0
		}
		return math.Max(0, math.Sin(2*math.Pi*beat))
	})
}

// crowd is voices that nobody can follow: each talks in syllables with a pitch, two
// formants and pauses of its own.
func (c *ambientCanvas) crowd(voices int, gain float64) {
	gain /= math.Sqrt(float64(voices))
	for range voices {
		pitch, near := c.between(90, 230), c.between(0.5, 1.2)*gain
		for at := c.between(0, 0.4); at < c.seconds(); {
			for range 3 + c.rng.IntN(9) {
				length := c.between(0.13, 0.28)
				c.syllable(at, length, pitch*c.between(0.85, 1.2), near)
				at += length * c.between(0.9, 1.25)
			}
			at += c.between(0.3, 1.6)
		}
	}
}

// syllable is a gliding harmonic sound under two formants, begun by a breath now and
// then.
func (c *ambientCanvas) syllable(at, length, pitch, gain float64) {
	f1, f2, glide := c.between(300, 750), c.between(900, 2200), c.between(-0.12, 0.08)
	var amp [24]float64
	harmonics := min(len(amp), int(math.Min(3400, 0.45*c.rate)/pitch))
	for h := range harmonics {
		f := pitch * float64(h+1)
		amp[h] = 1/(1+(f-f1)/110*((f-f1)/110)) + 0.4/(1+(f-f2)/170*((f-f2)/170))
	}
	if c.rng.IntN(4) == 0 {
		c.puff(at, 0.06, 1800, 3600, 0.5*gain)
	}
	c.event(at, length, func(s float64) float64 {
		where := s / length
		phase := 2 * math.Pi * pitch * (s + glide*s*where/2)
		return 2 * gain * math.Sin(math.Pi*where) * harmonicSum(amp[:harmonics], phase)
	})
}

// harmonicSum is the sum of amp[h] sin((h+1) phase), by the Chebyshev recurrence:
// one sine and one cosine for all.
func harmonicSum(amp []float64, phase float64) float64 {
	sin, cos := math.Sincos(phase)
	last, now, sum := 0.0, sin, 0.0
	for _, a := range amp {
		sum += a * now
		last, now = now, 2*cos*now-last
	}
	return sum
}
