// Command steady is vegeta with a steady hand.
//
// vegeta's command waits with Go's timers, which on an idle core are as coarse as the milliseconds in which the runtime
// polls: at 1000 a second half of the requests were sent 0.45 ms late (measured), twice what a review takes. With the
// kernel's own timer that is 0.04 ms.
//
// steady TARGETS CA RATE SECONDS posts the targets, JSON lines as vegeta's, in turn, and prints vegeta's CSV.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"log"
	"os"
	"runtime"
	"strconv"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
	"golang.org/x/sys/unix"
)

const (
	idleConnections = 25 // as client-go keeps them
	timeout         = 10 * time.Second
)

type pacer struct {
	rate, hits float64
	began      time.Time
}

// Pace returns when the next request is due; its caller need not wait any more.
func (p *pacer) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if hits == 0 {
		p.began = time.Now().Add(-elapsed)
	}
	runtime.Gosched() // the request before this one is sent by this very thread, which is awake
	due := time.Duration(float64(hits) / p.rate * float64(time.Second))
	if wait := due - time.Since(p.began); wait > 0 {
		must(unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)) // of this thread: it wakes when it said, not 50 us later
		rest := unix.NsecToTimespec(wait.Nanoseconds())
		unix.Nanosleep(&rest, nil) // interrupted, it is early: that shows in the result
	}
	return 0, float64(hits) >= p.hits
}

func (p *pacer) Rate(time.Duration) float64 { return p.rate }

func main() {
	lines, err := os.Open(os.Args[1])
	must(err)
	targets, err := vegeta.ReadAllTargets(vegeta.NewJSONTargeter(bufio.NewReader(lines), nil, nil))
	must(err)
	authority, err := os.ReadFile(os.Args[2])
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	rate, seconds := number(os.Args[3]), number(os.Args[4])

	attacker := vegeta.NewAttacker(vegeta.HTTP2(false), vegeta.KeepAlive(true), vegeta.Connections(idleConnections),
		vegeta.Timeout(timeout), vegeta.TLSConfig(&tls.Config{RootCAs: roots}))
	var results []*vegeta.Result
	for result := range attacker.Attack(vegeta.NewStaticTargeter(targets...), &pacer{rate: rate, hits: rate * seconds}, 0, "") {
		results = append(results, result) // written afterwards: the core is the client's
	}
	output := bufio.NewWriter(os.Stdout)
	encode := vegeta.NewCSVEncoder(output)
	for _, result := range results {
		must(encode(result))
	}
	must(output.Flush())
}

func number(text string) float64 {
	parsed, err := strconv.ParseFloat(text, 64)
	must(err)
	return parsed
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
