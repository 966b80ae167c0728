// Goroutines on small stacks that grow, a null pointer that is recovered, the scheduler's own signals, a full stack.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"sync"
)

func null(p *[1 << 20]int) (said any) {
	defer func() { said = recover() }()
	return p[5]
}

func grow(n int) int {
	var space [128]int
	space[n%128] = n
	if n == 0 {
		return 0
	}
	return grow(n-1) + space[n%128] - n + 1
}

func main() {
	for i := 0; i < 100; i++ {
		if null(nil) == nil {
			os.Exit(1)
		}
	}
	var all sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for i := 0; i < 200; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			block := make([]byte, 100000+i)
			depth := grow(2000)
			lock.Lock()
			sum += len(block) + depth
			lock.Unlock()
		}()
	}
	all.Wait()
	fmt.Println(sum)
	fmt.Println(exec.Command("sh", "-c", "exit 3").Run())
	debug.SetMaxStack(1 << 20)
	grow(1 << 20)
}
