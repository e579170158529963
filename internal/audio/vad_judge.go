package audio

import "math"

const (
	vadFeatures = 12
	vadHidden   = 12
)

// vadJudge weighs the evidence of a frame together with the frames before it.
type vadJudge struct {
	net    *vadNet
	over   float32 // mean height over the floor of the last 100 ms, dB
	voiced float32 // mean voicing of the last 100 ms
	lined  float32 // mean share of held lines of the last 100 ms
	steady float32 // mean change of the last 200 ms, dB
	speech float32 // the verdict
	x      [vadFeatures]float32
}

// vadNet is twelve straight cuts through the evidence and a vote over them: the
// least that can say "periodic and tall, unless two lines hold most of it". It
// costs about 170 products a frame.
type vadNet struct {
	hidden [vadHidden][vadFeatures + 1]float32 // weights, then the bias
	out    [vadHidden + 1]float32
}

// ramp is 0 up to from, 1 beyond to, and straight between them.
func ramp(x, from, to float32) float32 {
	return between((x-from)/(to-from), 0, 1)
}

// toward moves a mean by a share of the way to a value. What falls toward zero for
// ever would become a denormal number, which costs a hundred times the time.
func toward(mean, value, share float32) float32 {
	return mean + share*(value-mean) + 1e-20
}

// judge returns the likelihood of speech after this frame.
func (j *vadJudge) judge(e *vadEvidence) float32 {
	j.over = toward(j.over, e.above, 0.3)
	j.voiced = toward(j.voiced, e.voicing, 0.3)
	j.lined = toward(j.lined, e.held, 0.3)
	j.steady = toward(j.steady, e.change, 0.15)
	j.x = [vadFeatures]float32{
		ramp(e.above, 0, 20), ramp(j.over, 0, 20), ramp(e.low, 0, 20), ramp(e.high, 0, 20), e.wide,
		ramp(e.lines, 0.8, 1), ramp(e.held, 0.8, 1), j.lined,
		ramp(e.change, 0, 10), ramp(j.steady, 0, 10),
		ramp(e.voicing, 0.3, 1), ramp(j.voiced, 0.3, 1),
	}
	p := j.net.weigh(&j.x)
	pace := float32(0.35) // words have gaps: fall slower than rise
	if p > j.speech {
		pace = 0.6
	}
	j.speech += pace * (p - j.speech)
	return j.speech
}

// weigh is the likelihood of speech for one frame's features. Four sums at a time
// do not wait for each other.
func (n *vadNet) weigh(x *[vadFeatures]float32) float32 {
	z := n.out[vadHidden]
	for h := 0; h+3 < vadHidden; h += 4 {
		p, q, r, s := &n.hidden[h], &n.hidden[h+1], &n.hidden[h+2], &n.hidden[h+3]
		a, b, c, d := p[vadFeatures], q[vadFeatures], r[vadFeatures], s[vadFeatures]
		for k, v := range x {
			a += p[k] * v
			b += q[k] * v
			c += r[k] * v
			d += s[k] * v
		}
		z += n.out[h]*positive(a) + n.out[h+1]*positive(b) + n.out[h+2]*positive(c) + n.out[h+3]*positive(d)
	}
	return float32(1 / (1 + math.Exp(-float64(z))))
}
