package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// A hundred workers reach for a call: one gets it, and after it is over nobody.
func TestACallIsClaimedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newDesk(t, db, "a@example.com")
		c := d.call("")
		var won atomic.Int64
		var wait sync.WaitGroup
		for i := range 100 {
			wait.Go(func() {
				claimed, err := db.System().ClaimCall(context.Background(), c.ID, fmt.Sprint("node ", i))
				assertNoError(t, err)
				if claimed {
					won.Add(1)
				}
			})
		}
		wait.Wait()
		require.EqualValues(t, 1, won.Load())
		require.NoError(t, db.System().Release(t.Context(), c.ID))
		claimed, err := db.System().ClaimCall(t.Context(), c.ID, "again")
		require.NoError(t, err)
		require.False(t, claimed, "what was dialled once is never dialled again")
		over := d.call("", func(c *parley.Call) { c.Status = parley.CallFailed })
		claimed, err = db.System().ClaimCall(t.Context(), over.ID, "node")
		require.NoError(t, err)
		require.False(t, claimed)
	})
}

// A claim is undone only by the node that holds the call, and only before it has rung.
func TestAClaimIsUndoneByItsNode(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d, s := newDesk(t, db, "a@example.com"), db.System()
		c := d.call("")
		claim := func(node string) bool {
			claimed, err := s.ClaimCall(t.Context(), c.ID, node)
			require.NoError(t, err)
			return claimed
		}
		require.True(t, claim("mine"))
		require.ErrorIs(t, s.UnclaimCall(t.Context(), c.ID, "other"), store.ErrFenced)
		require.NotNil(t, d.get(c.ID).DialedAt)
		require.NoError(t, s.UnclaimCall(t.Context(), c.ID, "mine"))
		require.Nil(t, d.get(c.ID).DialedAt)
		require.True(t, claim("other"))
		require.NoError(t, s.Advance(t.Context(), "other", []store.Step{status(c.ID, parley.CallRinging)}))
		require.ErrorIs(t, s.UnclaimCall(t.Context(), c.ID, "other"), store.ErrFenced)
	})
}

// Whatever steps are written in whatever order, a row takes those that CanBecome allows
// and no others, and its timeline tells the same story.
func TestTransitionsAreGuarded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newDesk(t, db, "a@example.com")
		rapid.Check(t, func(r *rapid.T) {
			c := d.call("mine")
			want, story := parley.CallInitiated, []string{"initiated"}
			for range rapid.IntRange(1, 8).Draw(r, "steps") {
				next := rapid.SampledFrom(parley.CallStatuses).Draw(r, "next")
				node := rapid.SampledFrom([]string{"mine", "mine", "mine", "other"}).Draw(r, "node")
				if rapid.Bool().Draw(r, "end") && !next.Live() && next != parley.CallCompleted {
					ended := *c
					ended.Status = next
					err := db.System().EndCall(t.Context(), node, &ended)
					if node != "mine" || !want.CanBecome(next) {
						require.ErrorIs(r, err, store.ErrFenced)
						continue
					}
					require.NoError(r, err)
					want, story = next, append(story, string(next))
					break // nobody holds it now
				}
				require.NoError(r, db.System().Advance(t.Context(), node, []store.Step{status(c.ID, next)}))
				if node == "mine" && want.CanBecome(next) {
					want, story = next, append(story, string(next))
				}
			}
			got := d.get(c.ID)
			require.Equal(r, want, got.Status)
			var told []string
			for _, e := range got.Timeline {
				told = append(told, fmt.Sprint(e.Detail["status"]))
			}
			require.Equal(r, story, told)
		})
	})
}

// A node that was taken for dead comes back and completes its calls: all in vain.
func TestPromiseQ3StaleCompletionsAreRejected(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d := newDesk(t, db, "a@example.com")
		require.NoError(t, db.System().Join(ctx, "zombie", 1))
		var held []*parley.Call
		for range 100 {
			held = append(held, d.call("zombie"))
		}
		concluded := 0
		require.NoError(t, db.System().Bury(ctx, "zombie", -time.Second, func(s *store.System, c *parley.Call) error {
			reason := parley.EndNodeLost
			c.Status, c.EndReason = parley.CallFailed, &reason
			concluded++
			return errors.Join(s.Release(ctx, c.ID), s.EndCall(ctx, "", c))
		}))
		require.Equal(t, 100, concluded)
		alive, err := db.System().Beat(ctx, "zombie")
		require.NoError(t, err)
		require.False(t, alive, "it is told that it is dead")
		for _, c := range held {
			require.NoError(t, db.System().Advance(ctx, "zombie", []store.Step{status(c.ID, parley.CallInProgress)}))
			end(c)
			require.ErrorIs(t, db.System().EndCall(ctx, "zombie", c), store.ErrFenced)
			completed, err := db.System().CompleteCall(ctx, c)
			require.NoError(t, err)
			require.False(t, completed)
			got := d.get(c.ID)
			require.Equal(t, parley.CallFailed, got.Status)
			require.Equal(t, parley.EndNodeLost, *got.EndReason)
			require.Len(t, got.Timeline, 2)
		}
	})
}

func TestBury(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d := newDesk(t, db, "a@example.com")
		system := db.System()
		require.NoError(t, system.Join(ctx, "alive", 1))
		require.NoError(t, system.Join(ctx, "dead", 1))
		mine, theirs, gone := d.call("alive"), d.call("dead"), d.call("left without a word")
		_, err := db.SQL().Exec("UPDATE nodes SET beat_at = beat_at - 60000000 WHERE id = 'dead'")
		require.NoError(t, err)

		dead, err := system.DeadNodes(ctx, 15*time.Second)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"dead", "left without a word"}, dead)
		var concluded []parley.ID
		conclude := func(s *store.System, c *parley.Call) error {
			concluded = append(concluded, c.ID)
			return s.Release(ctx, c.ID)
		}
		require.NoError(t, system.Bury(ctx, "alive", 15*time.Second, conclude))
		require.Empty(t, concluded, "a node that beats is left alone")
		for _, node := range dead {
			require.NoError(t, system.Bury(ctx, node, 15*time.Second, conclude))
		}
		require.ElementsMatch(t, []parley.ID{theirs.ID, gone.ID}, concluded)
		dead, err = system.DeadNodes(ctx, 15*time.Second)
		require.NoError(t, err)
		require.Empty(t, dead)
		held, err := system.Call(ctx, mine.ID)
		require.NoError(t, err)
		require.NoError(t, system.EndCall(ctx, "alive", failed(held)), "it still is the live node's")

		// One that cannot be concluded leaves everything as it was.
		require.NoError(t, system.Join(ctx, "stubborn", 1))
		kept := d.call("stubborn")
		broken := errors.New("broken")
		require.ErrorIs(t, system.Bury(ctx, "stubborn", -time.Second, func(s *store.System, c *parley.Call) error {
			return errors.Join(s.Release(ctx, c.ID), broken)
		}), broken)
		require.NoError(t, system.EndCall(ctx, "stubborn", failed(kept)))
		alive, err := system.Beat(ctx, "stubborn")
		require.NoError(t, err)
		require.True(t, alive)
	})
}

func failed(c *parley.Call) *parley.Call {
	c.Status = parley.CallFailed
	return c
}

// Two nodes bury the same one at once: its calls are concluded once.
func TestBuryingIsDoneOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newDesk(t, db, "a@example.com")
		require.NoError(t, db.System().Join(t.Context(), "dead", 1))
		for range 10 {
			d.call("dead")
		}
		var concluded atomic.Int64
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				assertNoError(t, db.System().Bury(context.Background(), "dead", -time.Second, func(s *store.System, c *parley.Call) error {
					concluded.Add(1)
					return errors.Join(s.Release(context.Background(), c.ID), s.EndCall(context.Background(), "", failed(c)))
				}))
			})
		}
		wait.Wait()
		require.EqualValues(t, 10, concluded.Load())
	})
}

func TestLoadAndUsage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d, other := newDesk(t, db, "a@example.com"), newDesk(t, db, "b@example.com")
		other.call("")
		first, second := d.call(""), d.call("node")
		d.call("", func(c *parley.Call) { c.Status = parley.CallCompleted })
		d.at(first, time.Now().Add(-time.Hour))
		for range 2 {
			require.NoError(t, db.System().AddUsage(ctx, second, 1500, 61))
		}
		load, err := d.tenant.Load(ctx, time.Now())
		require.NoError(t, err)
		require.Equal(t, parley.Load{Live: 2, Begun: 2, Seconds: 122, Spent: 3000}, load)
		load, err = d.tenant.Load(ctx, time.Now().Add(48*time.Hour))
		require.NoError(t, err)
		require.Equal(t, parley.Load{Live: 2}, load, "a day begins with nothing spent")

		trunk := parley.ID(9)
		carried := d.call("node", func(c *parley.Call) { c.Carrier, c.TrunkID = parley.CarrierTrunk, &trunk })
		waiting := d.call("", func(c *parley.Call) { c.Carrier, c.TrunkID = parley.CarrierTrunk, &trunk })
		up, begun, err := db.System().TrunkLoad(ctx, trunk)
		require.NoError(t, err)
		require.Equal(t, []int{1, 0}, []int{up, begun})
		_, err = db.System().ClaimCall(ctx, waiting.ID, "node")
		require.NoError(t, err)
		up, begun, err = db.System().TrunkLoad(ctx, trunk)
		require.NoError(t, err)
		require.Equal(t, []int{2, 1}, []int{up, begun})
		require.NoError(t, db.System().EndCall(ctx, "node", failed(carried)))
		up, _, err = db.System().TrunkLoad(ctx, trunk)
		require.NoError(t, err)
		require.Equal(t, 1, up)
	})
}

// A call that has ended is unfinished for the node that ended it until it is completed.
func TestUnfinishedCalls(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		d := newDesk(t, db, "a@example.com")
		unfinished := func(node string) int64 {
			n, err := db.System().UnfinishedCalls(t.Context(), node)
			require.NoError(t, err)
			return n
		}
		c := d.call("mine", func(c *parley.Call) { c.Status = parley.CallInProgress })
		d.call("mine")
		require.Zero(t, unfinished("mine"), "it is live")
		c.Status = parley.CallEnded
		require.NoError(t, db.System().EndCall(t.Context(), "mine", c))
		require.EqualValues(t, 1, unfinished("mine"))
		require.Zero(t, unfinished("another"))
		_, err := db.System().CompleteCall(t.Context(), c)
		require.NoError(t, err)
		require.Zero(t, unfinished("mine"))
	})
}

// The room of an installation is that of its nodes.
func TestRoom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, system := t.Context(), db.System()
		holds := func(want int) {
			t.Helper()
			room, err := system.Room(ctx)
			require.NoError(t, err)
			require.Equal(t, want, room)
		}
		holds(0)
		require.NoError(t, system.Join(ctx, "a", 3))
		require.NoError(t, system.Join(ctx, "b", 5))
		holds(8)
		require.NoError(t, system.Join(ctx, "b", 0))
		holds(3)
		require.NoError(t, system.Leave(ctx, "a"))
		holds(0)
	})
}

func TestHangups(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		d, other := newDesk(t, db, "a@example.com"), newDesk(t, db, "b@example.com")
		held, waiting, over := d.call("node"), d.call(""), d.call("", func(c *parley.Call) { c.Status = parley.CallBusy })
		for _, c := range []*parley.Call{held, waiting} {
			got, err := d.tenant.RequestHangup(ctx, c.ID)
			require.NoError(t, err)
			require.Equal(t, c.ID, got.ID)
		}
		asked, err := db.System().Hangups(ctx, "node")
		require.NoError(t, err)
		require.Equal(t, []parley.ID{held.ID}, asked)
		yes, err := db.System().HangupAsked(ctx, waiting.ID)
		require.NoError(t, err)
		require.True(t, yes)
		_, err = d.tenant.RequestHangup(ctx, over.ID)
		require.Equal(t, parley.Conflict, parley.ErrorCode(err))
		_, err = other.tenant.RequestHangup(ctx, held.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
	})
}
