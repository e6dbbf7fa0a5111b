package redisconn

import "strings"

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// Slot returns the hash slot of a key as the specification of Redis Cluster defines it: CRC16 (XMODEM)
// of the hash tag, the text between the first "{" and the next "}", or of the whole key without one.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^key[i]]
	}
	return int(crc) % slotCount
}

var crcTable = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()

// keyOf returns the first key of a command. All keys of a command of the framework share a slot.
func keyOf(args []any) (key string, ok bool) {
	at := 1
	switch name := upper(args, 0); name {
	case "PING", "INFO", "TIME", "CONFIG", "CLIENT", "SCRIPT", "COMMAND", "ACL", "WAIT", "SCAN", "CLUSTER",
		"ROLE", "DBSIZE", "MULTI", "EXEC", "DISCARD", "ASKING", "HELLO", "AUTH", "FLUSHALL":
		return "", false
	case "EVAL", "EVALSHA":
		if textOf(args, 2) == "0" {
			return "", false
		}
		at = 3
	case "XINFO", "XGROUP", "OBJECT", "MEMORY":
		at = 2
	case "XREAD", "XREADGROUP":
		for at < len(args) && upper(args, at) != "STREAMS" {
			at++
		}
		at++
	}
	if at >= len(args) {
		return "", false
	}
	return textOf(args, at), true
}

func upper(args []any, at int) string { return strings.ToUpper(textOf(args, at)) }

func textOf(args []any, at int) string {
	if at >= len(args) {
		return ""
	}
	switch v := args[at].(type) {
	case string:
		return v
	case *string:
		return *v
	case []byte:
		return string(v)
	case int:
		if v == 0 {
			return "0"
		}
	}
	return ""
}

// Slots splits n items into parts of at most most items, each part with the indices of its items. In a
// cluster the keys of a part share a slot.
func (c *Conn) Slots(n, most int, key func(i int) string) (parts [][]int) {
	open := map[int]int{} // by slot: the part that is not full
	for i := range n {
		slot := 0
		if c.cluster != nil {
			slot = Slot(key(i))
		}
		at, ok := open[slot]
		if !ok || len(parts[at]) == most {
			at = len(parts)
			open[slot], parts = at, append(parts, nil)
		}
		parts[at] = append(parts[at], i)
	}
	return parts
}
