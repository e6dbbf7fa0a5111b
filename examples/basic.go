package examples

import "embed"

// Basic holds main.go and main_test.go of the example basic, in a directory of that name: what
// `runnel new` makes an app of.
//
//go:embed basic/main.go basic/main_test.go
var Basic embed.FS
