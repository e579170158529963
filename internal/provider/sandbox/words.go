package sandbox

// Finding words among the symbols that a lane has heard: where one may have begun,
// whether it ends now, and what it says.

// begin notes a place where a word may have begun eight symbols ago.
func (d *decoder) begin(l *lane, at int) {
	misses := l.chips.startMisses()
	if misses > startTolerance {
		return
	}
	first := at - startChips + 1
	if first <= d.ended {
		return
	}
	purity, loud := l.clarity(first, startChips)
	if purity < plausible {
		return
	}
	l.add(start{at: first, strong: misses <= strongTolerance && purity >= certain && loud})
}

// clarity is the mean purity of n symbols, and whether they were loud enough to
// be meant for us. Symbols that were not heard count only by being too many.
func (l *lane) clarity(first, n int) (purity float32, loud bool) {
	sum, count, level := 0, 0, 0
	for i := first; i < first+n; i++ {
		if s := l.symbols[i&ringMask]; s.flags&heard != 0 {
			sum += int(s.purity)
			level += int(s.level)
			count++
		}
	}
	if 2*count < n {
		return 0, false
	}
	return float32(sum) / float32(255*count), level >= count*levelSteps
}

// add keeps a start, in place of the oldest weak one if there are too many.
func (l *lane) add(s start) {
	for i := range l.count {
		if l.starts[i].at == s.at {
			l.starts[i].strong = l.starts[i].strong || s.strong
			return
		}
	}
	if l.count == maxStarts {
		drop := 0
		for i := range l.count {
			if !l.starts[i].strong && !l.starts[i].expected {
				drop = i
				break
			}
		}
		copy(l.starts[drop:], l.starts[drop+1:l.count])
		l.count--
	}
	l.starts[l.count] = s
	l.count++
}

// finish tries whether this symbol is the last of a word begun earlier.
func (d *decoder) finish(which, at int) {
	l := &d.lanes[which]
	kept := 0
	for i := range l.count {
		s := &l.starts[i]
		n := at - s.at + 1
		if n > maxSymbols {
			if s.strong {
				d.lose()
			}
			continue
		}
		if s.expected && n == minSymbols {
			purity, loud := l.clarity(s.at, n)
			s.strong = s.strong || purity >= certain && loud
		}
		if n >= minSymbols && d.try(l, s.at, n) {
			d.understood(which, at)
			return
		}
		l.starts[kept] = *s
		kept++
	}
	l.count = kept
}

// try decodes the n symbols since first as a word of either grade.
func (d *decoder) try(l *lane, first, n int) bool {
	for g := range grades {
		want := &d.book.chips[n][g]
		if tail := n - startChips; l.chips.misses(want, tail) > (tail+1)/2 {
			continue
		}
		if d.decode(l, first, n, g, want) {
			return true
		}
	}
	return false
}

// decode repairs and reads a word whose place and length are known.
func (d *decoder) decode(l *lane, first, n int, g grade, want *chips) bool {
	var repair repairer
	word, suspects := repair.word[:n], repair.suspects[:0]
	parity := n - g.content(n)
	for i := range n {
		s := l.symbols[(first+i)&ringMask]
		word[i] = s.data ^ d.book.whiten[i]
		if s.flags != heard || l.chips.at(n-1-i) != want.at(n-1-i) {
			suspects = append(suspects, byte(i))
		}
	}
	if !d.book.rs.repair(&repair, word, parity, suspects) {
		return false
	}
	last, loud := d.proof(l, word, first)
	if !loud {
		return false
	}
	header, text := d.book.read(word, n-parity)
	if len(text) == 0 || len(text) > maxPiece {
		return false
	}
	d.events = append(d.events, event{header: header, size: uint8(len(text))})
	copy(d.events[len(d.events)-1].text[:], text)
	d.ended = last
	return true
}

// proof finds the last symbol of a repaired word that came through unharmed, and
// whether those that did were loud enough: others may be loud because somebody
// else spoke over them.
func (d *decoder) proof(l *lane, word []byte, first int) (last int, loud bool) {
	level, count := 0, 0
	for i, c := range word {
		if s := l.symbols[(first+i)&ringMask]; s.flags&heard != 0 && s.data^d.book.whiten[i] == c {
			level += int(s.level)
			count++
			last = first + i
		}
	}
	return last, level >= count*levelSteps
}

// understood ends a word: what else seemed to begin in it was part of it. What
// began after its last unharmed symbol was not: the word was cut off there, and
// repaired from what came before. The next one begins after the pause it names.
func (d *decoder) understood(which, at int) {
	for i := range d.lanes {
		l := &d.lanes[i]
		kept := 0
		for _, s := range l.starts[:l.count] {
			if s.at > d.ended {
				l.starts[kept] = s
				kept++
			}
		}
		l.count = kept
	}
	best := which
	if d.locked < 0 {
		for i := range d.lanes {
			if d.lanes[i].mean > d.lanes[best].mean {
				best = i
			}
		}
		d.locked = best
	}
	header := d.events[len(d.events)-1].header
	next := at + 1 + pauses[header>>pauseShift]
	switch { // lanes far apart count the same symbol differently
	case best-which > lanes/2:
		next--
	case which-best > lanes/2:
		next++
	}
	d.lanes[best].add(start{at: next, expected: true})
}
