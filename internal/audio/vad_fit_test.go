package audio

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFitVAD finds the judge's weights anew from the tuning material and prints
// them: VADFIT=1 go test -run TestFitVAD -v ./internal/audio. The floors follow
// the verdicts, so material is collected and weighed in turns.
func TestFitVAD(t *testing.T) {
	if os.Getenv("VADFIT") == "" {
		t.Skip("a tool: set VADFIT=1 to fit the detector's weights anew")
	}
	f := newFit()
	for round := range 5 {
		rows := f.rows(t)
		loss := 0.0
		for range 20 {
			loss = f.descend(rows)
		}
		f.rate /= 2
		t.Logf("round %d: %d frames, loss %.4f", round, len(rows), loss)
	}
	f.report(t, f.rows(t))
	f.print()
}

func (f *fit) print() {
	row := func(w []float32) string {
		out := ""
		for _, v := range w {
			out += fmt.Sprintf("%.3f, ", v)
		}
		return "{" + out[:len(out)-2] + "},"
	}
	for h := range f.net.hidden {
		fmt.Println(row(f.net.hidden[h][:]))
	}
	fmt.Println("out: ", row(f.net.out[:]))
}

type fitRow struct {
	x    [vadFeatures]float32
	y, w float32
	kind string
}

func (f *fit) collect(t *testing.T, rows []fitRow, kind string, rate Rate, x []int16, truth []frameTruth) []fitRow {
	v, err := NewVAD(rate)
	require.NoError(t, err)
	v.mind.net = &f.net
	size := rate.FrameSamples()
	for i := 0; (i+1)*size <= len(x); i++ {
		v.Process(x[i*size : (i+1)*size])
		row := fitRow{x: v.mind.x, w: 1, kind: kind}
		if truth != nil {
			if truth[i] == frameEdge {
				continue
			}
			if truth[i] == frameSpeech {
				row.y, row.w = 1, 1.5
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (f *fit) rows(t *testing.T) []fitRow {
	var rows []fitRow
	seed := uint64(100)
	for _, who := range tuningTalkers {
		clean := talk(t, who, tuningTexts, Rate8k, 1.2)
		truth := truthOf(clean, Rate8k)
		for _, gain := range []float64{0, -14} {
			rows = f.collect(t, rows, "clean", Rate8k, stimGain(clean, gain), truth)
			for _, snr := range []float64{20, 10, 5} {
				seed++
				white := stimSum(clean, stimWhite(seed, len(clean), -22-snr))
				pink := stimSum(clean, stimPink(seed, len(clean), -22-snr))
				rows = f.collect(t, rows, "white", Rate8k, stimGain(white, gain), truth)
				rows = f.collect(t, rows, "pink", Rate8k, stimGain(pink, gain), truth)
			}
		}
	}
	for _, pitch := range []float64{105, 170, 240} {
		clean := stimSyllables(seed, Rate8k, 160000, pitch, -22)
		rows = f.collect(t, rows, "syllables", Rate8k, clean, truthOf(clean, Rate8k))
	}
	for i, level := range []float64{-60, -45, -30, -18} {
		seed += 10
		rate := []Rate{Rate8k, Rate16k}[i%2]
		rows = f.others(t, rows, seed, Rate8k, level)
		rows = f.others(t, rows, seed+1000, rate, level+4)
	}
	// The sounds of our own backgrounds, other than a crowd, are what callers sit in.
	for _, sound := range []AmbientSound{AmbientOffice, AmbientCity, AmbientForest, AmbientNature} {
		x := renderAmbient(sound, Rate8k, 1000)
		for _, gain := range []float64{0, -12, -24} {
			rows = f.collect(t, rows, string(sound), Rate8k, stimGain(x, gain), nil)
		}
	}
	return rows
}

// others collects everything that is not speech, with and without a hiss under it.
func (f *fit) others(t *testing.T, rows []fitRow, seed uint64, rate Rate, level float64) []fitRow {
	n := 10 * int(rate)
	sounds := notSpeech(seed, rate, n, level)
	for _, name := range slices.Sorted(maps.Keys(sounds)) {
		rows = f.collect(t, rows, name, rate, sounds[name], nil)
		hissy := stimSum(sounds[name], stimWhite(seed+1, n, -58))
		rows = f.collect(t, rows, name, rate, hissy, nil)
	}
	return rows
}

type fit struct {
	net, m, v vadNet
	rate      float64
	steps     float64
	rng       *rand.Rand
}

func newFit() *fit {
	f := &fit{rate: 0.004, rng: stimRand(1)}
	for h := range f.net.hidden {
		for k := range f.net.hidden[h] {
			f.net.hidden[h][k] = float32(f.rng.NormFloat64()) / 2
		}
		f.net.out[h] = float32(f.rng.NormFloat64()) / 2
	}
	return f
}

// descend is one pass of Adam over the rows in batches of 256.
func (f *fit) descend(rows []fitRow) float64 {
	f.rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	var loss, weight float64
	for batch := range slices.Chunk(rows, 256) {
		var g vadNet
		for i := range batch {
			loss += f.slope(&batch[i], &g)
			weight += float64(batch[i].w)
		}
		f.step(&g, 1/float32(len(batch)))
	}
	return loss / weight
}

func (f *fit) slope(r *fitRow, g *vadNet) float64 {
	n := &f.net
	var active [vadHidden]float32
	z := n.out[vadHidden]
	for h := range n.hidden {
		sum := n.hidden[h][vadFeatures]
		for k, v := range r.x {
			sum += n.hidden[h][k] * v
		}
		active[h] = max(0, sum)
		z += n.out[h] * active[h]
	}
	p := 1 / (1 + math.Exp(-float64(z)))
	d := (float32(p) - r.y) * r.w
	g.out[vadHidden] += d
	for h, a := range active {
		if a == 0 {
			continue
		}
		g.out[h] += d * a
		back := d * n.out[h]
		for k, v := range r.x {
			g.hidden[h][k] += back * v
		}
		g.hidden[h][vadFeatures] += back
	}
	if r.y > 0.5 {
		return -float64(r.w) * math.Log(p+1e-9)
	}
	return -float64(r.w) * math.Log(1-p+1e-9)
}

func (f *fit) step(g *vadNet, scale float32) {
	f.steps++
	rate := float32(f.rate * math.Sqrt(1-math.Pow(0.999, f.steps)) / (1 - math.Pow(0.9, f.steps)))
	update := func(w, m, v []float32, g []float32) {
		for i := range w {
			d := g[i]*scale + 1e-5*w[i]
			m[i] += 0.1 * (d - m[i])
			v[i] += 0.001 * (d*d - v[i])
			w[i] -= rate * m[i] / (float32(math.Sqrt(float64(v[i]))) + 1e-8)
		}
	}
	for h := range g.hidden {
		update(f.net.hidden[h][:], f.m.hidden[h][:], f.v.hidden[h][:], g.hidden[h][:])
	}
	update(f.net.out[:], f.m.out[:], f.v.out[:], g.out[:])
}

func (f *fit) report(t *testing.T, rows []fitRow) {
	wrong, count := map[string]float64{}, map[string]float64{}
	for _, r := range rows {
		key := fmt.Sprintf("%-12s speech=%v", r.kind, r.y > 0.5)
		count[key]++
		if (f.net.weigh(&r.x) > 0.5) != (r.y > 0.5) {
			wrong[key]++
		}
	}
	for key, n := range count {
		t.Logf("%s: %6.0f frames, %.1f %% wrong", key, n, 100*wrong[key]/n)
	}
}
