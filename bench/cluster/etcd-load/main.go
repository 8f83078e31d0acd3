// The load of `coterie bench cluster` on etcd's API with etcd's own client: several clients, each with one request in flight.
// Prints one JSON object. Built against Debian's golang-etcd-server-dev, without modules.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

type figures struct {
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	Errors    int     `json:"errors"`
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Creates a session, acquires its lock, and ends both.
func lockOnce(ctx context.Context, client *clientv3.Client) error {
	session, err := concurrency.NewSession(client, concurrency.WithTTL(10))
	if err != nil {
		return err
	}
	mutex := concurrency.NewMutex(session, "/bench/session-lock/")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	if err := mutex.Unlock(ctx); err != nil {
		return err
	}
	return session.Close()
}

// Keys per client: with 256 clients, all keys and their history fit into the 8 MiB of Coterie's members.
const keys = 20

func main() {
	endpoint := flag.String("endpoint", "127.0.0.1:2379", "where the leader listens")
	watched := flag.String("watched", "127.0.0.1:2379", "where another member listens, for a watcher")
	work := flag.String("work", "write", "write, read, serializable-read, lock, session-lock or watch")
	inFlight := flag.Int("in-flight", 1, "clients, each with one request under way")
	ms := flag.Int("ms", 1000, "for how long")
	flag.Parse()

	// One connection per 32 clients: a single connection would be the bottleneck.
	clients := make([]*clientv3.Client, 1+(*inFlight-1)/32)
	for at := range clients {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{*endpoint}, DialTimeout: 5 * time.Second})
		if err != nil {
			fail(err)
		}
		clients[at] = client
	}
	value := strings.Repeat("x", 64)
	locks := make([]*concurrency.Mutex, *inFlight)
	if *work == "lock" {
		for at := range locks {
			session, err := concurrency.NewSession(clients[at%len(clients)], concurrency.WithTTL(30))
			if err != nil {
				fail(err)
			}
			locks[at] = concurrency.NewMutex(session, "/bench/lock/")
		}
	}
	ctx := context.Background()
	var events clientv3.WatchChan
	if *work == "watch" {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{*watched}, DialTimeout: 5 * time.Second})
		if err != nil {
			fail(err)
		}
		events = client.Watch(ctx, "watched", clientv3.WithCreatedNotify())
		<-events
	}
	do := func(client, turn int) error {
		through := clients[client%len(clients)]
		key := fmt.Sprintf("key-%d-%d", client, turn%keys)
		switch *work {
		case "write":
			_, err := through.Put(ctx, key, value)
			return err
		case "read":
			_, err := through.Get(ctx, key)
			return err
		case "serializable-read":
			_, err := through.Get(ctx, key, clientv3.WithSerializable())
			return err
		case "session-lock":
			return lockOnce(ctx, through)
		case "watch":
			if _, err := through.Put(ctx, "watched", strconv.Itoa(turn)); err != nil {
				return err
			}
			event := <-events
			return event.Err()
		default:
			if err := locks[client].Lock(ctx); err != nil {
				return err
			}
			return locks[client].Unlock(ctx)
		}
	}

	var mutex sync.Mutex
	var group sync.WaitGroup
	var took []float64
	errors := 0
	began := time.Now()
	end := began.Add(time.Duration(*ms) * time.Millisecond)
	for client := 0; client < *inFlight; client++ {
		group.Add(1)
		go func(client int) {
			defer group.Done()
			var own []float64
			failed := 0
			for turn := 0; time.Now().Before(end); turn++ {
				since := time.Now()
				if err := do(client, turn); err != nil {
					fmt.Fprintln(os.Stderr, err)
					failed++
				} else {
					own = append(own, float64(time.Since(since).Microseconds())/1000)
				}
			}
			mutex.Lock()
			took = append(took, own...)
			errors += failed
			mutex.Unlock()
		}(client)
	}
	group.Wait()
	seconds := time.Since(began).Seconds()
	sort.Float64s(took)
	found := figures{Errors: errors}
	if n := len(took); n > 0 {
		found = figures{float64(n) / seconds, took[n/2], took[n*99/100], errors}
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fail(err)
	}
}
