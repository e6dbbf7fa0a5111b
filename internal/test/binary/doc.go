// Package binary holds the tests of what a program that uses Runnel weighs.
package binary
