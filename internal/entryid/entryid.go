package entryid

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Compare compares two entry IDs, ms-seq, by text: 64 bits fit no double and
// need no parsing.
func Compare(a, b string) int {
	const ms = 13 // digits of a time of these years
	if len(a) == len(b) && len(a) > ms && a[ms] == '-' && b[ms] == '-' {
		return strings.Compare(a, b)
	}
	am, as := cutID(a)
	bm, bs := cutID(b)
	return cmp.Or(len(am)-len(bm), strings.Compare(am, bm), len(as)-len(bs), strings.Compare(as, bs))
}

func cutID(id string) (ms, seq string) {
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		return id[:i], id[i+1:]
	}
	return id, "0"
}

// EventID is the name of an event, or a dead letter, for people: "partition/entry ID", as an
// entry ID is unique only within its partition. It is "" for no entry ID.
func EventID(partition int, id string) string {
	if id == "" {
		return ""
	}
	return strconv.Itoa(partition) + "/" + id
}

var eventID = regexp.MustCompile(`^([0-9]{1,9})/([0-9]+-[0-9]+)$`)

// ParseEventID is the inverse of EventID.
func ParseEventID(s string) (partition int, id string, ok bool) {
	m := eventID.FindStringSubmatch(s)
	if m == nil {
		return 0, "", false
	}
	partition, err := strconv.Atoi(m[1])
	return partition, m[2], err == nil
}

// Before returns the largest ID below an entry ID; a number alone means number-0. The result
// for "0-0", the lowest ID, is "0-0".
func Before(id string) string {
	ms, seq := cutID(id)
	m, err1 := strconv.ParseUint(ms, 10, 64)
	n, err2 := strconv.ParseUint(seq, 10, 64)
	switch {
	case err1 != nil || err2 != nil || (m == 0 && n == 0):
		return "0-0"
	case n > 0:
		return fmt.Sprintf("%d-%d", m, n-1)
	}
	return fmt.Sprintf("%d-%d", m-1, uint64(math.MaxUint64))
}

const (
	firstMoment = -62_135_596_800_000 // ms, the year 1
	lastMoment  = 253_402_300_799_999 // the end of the year 9999
)

// MomentOf returns the time of milliseconds since 1970, in UTC. A time that JSON cannot
// represent becomes the nearest one that it can: other programs write IDs and times, too.
func MomentOf(ms int64) time.Time { return time.UnixMilli(min(max(ms, firstMoment), lastMoment)).UTC() }

// Time returns when the server made an entry ID, to the millisecond.
func Time(id string) time.Time { return MomentOf(Millis(id)) }

// Millis is Time in ms since 1970.
func Millis(id string) (ms int64) {
	for i := 0; i < len(id) && id[i] >= '0' && id[i] <= '9'; i++ {
		ms = ms*10 + int64(id[i]-'0')
	}
	return ms
}
