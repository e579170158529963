package audio

import "math"

// The constants of G.722. Quantizer outputs are scaled by 8 as in its tables,
// so that a product with the step needs one shift of 15.

const (
	g722LowStep  = 32 // The steps of silence, which is also the reset state.
	g722HighStep = 8

	g722HighLevel = 564 // The only decision level of the higher band.
)

// g722Taps is one phase of the mirror filter: every second coefficient,
// times 8192 (section 3.1).
var g722Taps = [12]int{3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11}

// g722LowLevels are the decision levels between the thirty intervals of the lower
// band, without sign (section 3.3), filled up with two that no sample reaches.
var g722LowLevels = [32]int{
	0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650,
	714, 786, 858, 940, 1023, 1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919,
	1 << 40, 1 << 40,
}

// g722Magnitudes6 and g722Magnitudes4 are the outputs of the inverse quantizers
// of six and four bits, smallest first, and g722Weights4 how each of the four-bit
// ones moves the logarithm of the step.
var (
	g722Magnitudes6 = [30]int{
		136, 432, 728, 1040, 1360, 1688, 2032, 2400, 2776, 3168, 3576, 4008, 4464, 4944, 5456,
		6000, 6576, 7192, 7856, 8576, 9360, 10232, 11192, 12280, 13512, 14984, 16704, 19008, 21904, 24808,
	}
	g722Magnitudes4 = [8]int{0, 1200, 2584, 4240, 6288, 8968, 12896, 20456}
	g722Weights4    = [8]int{-60, -30, 58, 172, 334, 538, 1198, 3042}
)

// g722LowCodes are the codes of the intervals, smallest first, and from index 32
// on those of the negative ones.
var g722LowCodes = g722LowCodeTable()

// g722LowCodeTable counts down from 61 for positive intervals, and for negative
// ones from 31 but for the two smallest, which are 63 and 62: the codes a line
// sees most are rich in ones.
func g722LowCodeTable() *[64]byte {
	var table [64]byte
	for interval := range g722Magnitudes6 {
		table[interval] = byte(61 - interval)
		table[32+interval] = byte(33 - interval)
	}
	table[32], table[33] = 63, 62
	return &table
}

// By code: what the inverse quantizers give, and how much each code moves the
// logarithm of the step (sections 3.4 and 3.5).
var (
	g722LowOutputs6                 = g722LowTable6()
	g722LowOutputs4, g722LowWeights = g722LowTables4()
	g722HighOutputs                 = [4]int{-7408, -1616, 7408, 1616}
	g722HighWeights                 = [4]int{798, -214, 798, -214}
	g722Antilog                     = g722AntilogTable()
)

// g722LowTable6 lays the magnitudes out by code. The four codes that no encoder
// sends (0 to 3, kept free of long runs of zeros) decode to the smallest
// negative value.
func g722LowTable6() *[64]int {
	var table [64]int
	for i := range 4 {
		table[i] = -g722Magnitudes6[0]
	}
	for interval, v := range g722Magnitudes6 {
		table[g722LowCodes[interval]] = v
		table[g722LowCodes[32+interval]] = -v
	}
	return &table
}

// g722LowTables4 does the same for the four upper bits: 15 down to 8 are
// positive, smallest first, 7 down to 1 negative, and 0 is never sent.
func g722LowTables4() (outputs, weights *[16]int) {
	outputs, weights = new([16]int), new([16]int)
	for m, v := range g722Magnitudes4 {
		outputs[15-m], weights[15-m] = v, g722Weights4[m]
		if m > 0 {
			outputs[8-m], weights[8-m] = -v, g722Weights4[m]
		}
	}
	weights[0] = g722Weights4[0]
	return outputs, weights
}

// g722AntilogTable is 2^(i/32) in units of 1/2048 (section 3.5).
func g722AntilogTable() *[32]int {
	var table [32]int
	for i := range table {
		table[i] = int(math.Round(2048 * math.Exp2(float64(i)/32)))
	}
	return &table
}
