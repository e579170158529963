package main

type benchCmd struct{}
