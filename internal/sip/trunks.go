package sip

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley"
)

// trunkSet is who may call us: the trunks and the addresses they call from.
type trunkSet struct {
	mu     sync.RWMutex
	trunks []parley.Trunk
	hosts  map[parley.ID][]netip.Addr // what the carrier's name last resolved to
}

func newTrunkSet() *trunkSet { return &trunkSet{hosts: map[parley.ID][]netip.Addr{}} }

func (s *trunkSet) replace(trunks []parley.Trunk) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trunks = trunks
	kept := map[parley.ID][]netip.Addr{}
	for _, t := range trunks {
		kept[t.ID] = s.hosts[t.ID]
		if a, ok := literalHost(t.Address); ok {
			kept[t.ID] = []netip.Addr{a}
		}
	}
	s.hosts = kept
}

// resolved notes the addresses behind a trunk's name.
func (s *trunkSet) resolved(id parley.ID, addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.hosts[id]; ok {
		s.hosts[id] = addresses
	}
}

// from is the trunks that call from an address: one, or several accounts of a carrier.
func (s *trunkSet) from(address netip.Addr) (found []parley.Trunk) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.trunks {
		if s.callsFrom(t, address) {
			found = append(found, t)
		}
	}
	return found
}

func (s *trunkSet) callsFrom(t parley.Trunk, address netip.Addr) bool {
	for _, allowed := range t.AllowedInbound {
		if prefix, err := netip.ParsePrefix(allowed); err == nil && prefix.Contains(address) {
			return true
		}
		if single, err := netip.ParseAddr(allowed); err == nil && single.Unmap() == address {
			return true
		}
	}
	return slices.Contains(s.hosts[t.ID], address)
}

func (s *trunkSet) trusted(address netip.Addr) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.trunks {
		if s.callsFrom(t, address) {
			return true
		}
	}
	return false
}

// byUser is the trunk with a digest username. A trunk without a password is not
// reachable by digest: nobody gets in with an empty one.
func (s *trunkSet) byUser(user string) (parley.Trunk, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.trunks {
		if t.Username == user && user != "" && t.Password != "" {
			return t, true
		}
	}
	return parley.Trunk{}, false
}

// challengeable says whether any trunk could be reached by digest at all.
func (s *trunkSet) challengeable() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.trunks {
		if t.Username != "" && t.Password != "" {
			return true
		}
	}
	return false
}

// contactUser is the user part of a trunk's Contact, by which a registrar's calls name it.
func contactUser(id parley.ID) string { return "trunk-" + strconv.FormatInt(id, 10) }

func trunkOfContact(user string) (parley.ID, bool) {
	digits, ok := strings.CutPrefix(user, "trunk-")
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}

func literalHost(hostport string) (netip.Addr, bool) {
	host, _ := splitHostPort(hostport)
	a, err := netip.ParseAddr(host)
	return a.Unmap(), err == nil
}
