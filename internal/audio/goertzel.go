package audio

import "math"

// Goertzel's algorithm is one bin of a Fourier transform at any frequency, which
// is cheaper than the whole transform when a few frequencies are asked for. It takes
// samples as they are: the step from one to the next takes longer than to make a
// float of one.

// goertzelTurn is the coefficient of a frequency.
func goertzelTurn(rate, hertz float64) float64 { return 2 * math.Cos(2*math.Pi*hertz/rate) }

// goertzelPower is the squared magnitude of x at one frequency. A pure sine of
// energy E over n samples gives E*n/2.
func goertzelPower(x []int16, turn float64) float64 {
	var now, old float64
	for _, v := range x {
		now, old = float64(v)+turn*now-old, now
	}
	return goertzelEnd(now, old, turn)
}

func goertzelEnd(now, old, turn float64) float64 { return now*now + old*old - turn*now*old }

// goertzelFour runs four frequencies at once: each is a chain of dependent steps,
// and a processor can walk four chains in the time of one.
func goertzelFour[sample int16 | int32](x []sample, turn, now, old *[4]float64) {
	t0, t1, t2, t3 := turn[0], turn[1], turn[2], turn[3]
	a0, a1, a2, a3 := now[0], now[1], now[2], now[3]
	b0, b1, b2, b3 := old[0], old[1], old[2], old[3]
	for _, s := range x {
		v := float64(s)
		a0, b0 = v-b0+t0*a0, a0
		a1, b1 = v-b1+t1*a1, a1
		a2, b2 = v-b2+t2*a2, a2
		a3, b3 = v-b3+t3*a3, a3
	}
	*now, *old = [4]float64{a0, a1, a2, a3}, [4]float64{b0, b1, b2, b3}
}

// squareSum is the energy of x.
func squareSum(x []int16) float64 {
	var sum int64
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d := int64(x[0]), int64(x[1]), int64(x[2]), int64(x[3])
		sum += a*a + b*b + c*c + d*d
	}
	for _, v := range x {
		sum += int64(v) * int64(v)
	}
	return float64(sum)
}
