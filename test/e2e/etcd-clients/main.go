// Clients that repeatedly use a mutex and an election of etcd's Go library (package concurrency), and resources that check
// their users. Prints the counts as lines of JSON until standard input ends. Built against Debian's golang-etcd-server-dev,
// without modules.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	pb "go.etcd.io/etcd/etcdserver/etcdserverpb"
	"google.golang.org/grpc"
)

const (
	sayEvery  = 50 * time.Millisecond
	dialTime  = 2 * time.Second
	useTimes  = 3
	useEvery  = 3 * time.Millisecond
	restsFor  = 20 * time.Millisecond
	endsTries = 5
)

var patience time.Duration

// The printed counts, and the violations.
type account struct {
	Mutex    int64    `json:"mutex"`
	Election int64    `json:"election"`
	Sessions int64    `json:"sessions"`
	Expired  int64    `json:"expired"`
	Failed   int64    `json:"failed"`
	Refused  int64    `json:"refused"`
	Wrong    []string `json:"wrong"`
}

var (
	guard    sync.Mutex
	counted  = account{Wrong: []string{}}
	stopping int32
)

func wrong(format string, values ...interface{}) {
	guard.Lock()
	defer guard.Unlock()
	counted.Wrong = append(counted.Wrong, fmt.Sprintf(format, values...))
}

func say() {
	guard.Lock()
	defer guard.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(counted); err != nil {
		os.Exit(1)
	}
}

func hasToStop() bool { return atomic.LoadInt32(&stopping) == 1 }

// A session that is certain to last until a known time: its TTL after the last renewal was requested, since no member can
// have renewed it earlier. The library may consider the session alive for longer, which is not an error of the cluster.
type vouched struct {
	*concurrency.Session
	leases *watchedLeases
	given  int32
}

func (s *vouched) holds() bool {
	select {
	case <-s.Done():
		return false
	default:
		return time.Now().Before(s.leases.until(int64(s.Lease())))
	}
}

// Reports a violation if the session ends by itself before its time.
func (s *vouched) watch(name string) {
	<-s.Done()
	if atomic.LoadInt32(&s.given) == 1 {
		return
	}
	left := time.Until(s.leases.until(int64(s.Lease())))
	guard.Lock()
	counted.Expired++
	guard.Unlock()
	if left > 0 {
		wrong("the session of %s ended %v before its time", name, left)
	}
}

// Revokes the lease if possible. Otherwise it expires.
func (s *vouched) end() {
	atomic.StoreInt32(&s.given, 1)
	s.Orphan()
	for try := 0; try < endsTries; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		_, err := s.Client().Revoke(ctx, s.Lease())
		cancel()
		if err == nil || strings.Contains(err.Error(), "lease not found") {
			return
		}
		time.Sleep(restsFor)
	}
}

// Wraps the calls about leases, and records when the last answered renewal was requested.
type watchedLeases struct {
	pb.LeaseClient
	mutex sync.Mutex
	ends  map[int64]time.Time
}

func (l *watchedLeases) until(lease int64) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.ends[lease]
}

func (l *watchedLeases) lasts(lease int64, from time.Time, ttl int64) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if until := from.Add(time.Duration(ttl) * time.Second); ttl > 0 && until.After(l.ends[lease]) {
		l.ends[lease] = until
	}
}

func (l *watchedLeases) LeaseGrant(ctx context.Context, in *pb.LeaseGrantRequest, opts ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	from := time.Now()
	response, err := l.LeaseClient.LeaseGrant(ctx, in, opts...)
	if err == nil {
		l.lasts(response.ID, from, response.TTL)
	}
	return response, err
}

func (l *watchedLeases) LeaseKeepAlive(ctx context.Context, opts ...grpc.CallOption) (pb.Lease_LeaseKeepAliveClient, error) {
	stream, err := l.LeaseClient.LeaseKeepAlive(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return &watchedStream{Lease_LeaseKeepAliveClient: stream, leases: l, asked: map[int64][]time.Time{}}, nil
}

// Responses arrive in the order of the requests.
type watchedStream struct {
	pb.Lease_LeaseKeepAliveClient
	leases *watchedLeases
	mutex  sync.Mutex
	asked  map[int64][]time.Time
}

func (s *watchedStream) Send(request *pb.LeaseKeepAliveRequest) error {
	s.mutex.Lock()
	s.asked[request.ID] = append(s.asked[request.ID], time.Now())
	s.mutex.Unlock()
	return s.Lease_LeaseKeepAliveClient.Send(request)
}

func (s *watchedStream) Recv() (*pb.LeaseKeepAliveResponse, error) {
	response, err := s.Lease_LeaseKeepAliveClient.Recv()
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if asked := s.asked[response.ID]; len(asked) > 0 {
		s.leases.lasts(response.ID, asked[0], response.TTL)
		s.asked[response.ID] = asked[1:]
	}
	return response, nil
}

// A resource that allows one user at a time, and rejects tokens lower than the highest one it has seen.
type resource struct {
	name    string
	entries *int64
	mutex   sync.Mutex
	highest int64
	user    *use
}

type use struct {
	who     string
	token   int64
	session *vouched
}

func (u *use) String() string { return fmt.Sprintf("%s with %d", u.who, u.token) }

// Returns whether the user may enter. It is a violation if the previous user's session may still last, or if the user is too
// late although its own session lasts.
func (r *resource) enter(next *use) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if next.token <= r.highest {
		return r.refuse(next)
	}
	if r.user != nil && r.user.session.holds() {
		wrong("%s: %v and %v hold it", r.name, r.user, next)
	}
	r.highest, r.user = next.token, next
	guard.Lock()
	*r.entries++
	guard.Unlock()
	return true
}

func (r *resource) take(by *use) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return by.token == r.highest || r.refuse(by)
}

func (r *resource) refuse(late *use) bool {
	if late.session.holds() {
		wrong("%s: %v has it and came after %d", r.name, late, r.highest)
	}
	guard.Lock()
	counted.Refused++
	guard.Unlock()
	return false
}

func (r *resource) leave(user *use) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.user == user {
		r.user = nil
	}
}

// Acquires the mutex or the leadership. Returns its token and a function that releases it.
type turn func(ctx context.Context, session *concurrency.Session) (token int64, leave func(context.Context) error, err error)

func lock(ctx context.Context, session *concurrency.Session) (int64, func(context.Context) error, error) {
	mutex := concurrency.NewMutex(session, "/guarded/mutex")
	if err := mutex.Lock(ctx); err != nil {
		return 0, nil, err
	}
	owner := pb.Compare(mutex.IsOwner())
	return owner.GetCreateRevision(), mutex.Unlock, nil
}

func lead(ctx context.Context, session *concurrency.Session) (int64, func(context.Context) error, error) {
	election := concurrency.NewElection(session, "/guarded/election")
	if err := election.Campaign(ctx, fmt.Sprintf("%x", session.Lease())); err != nil {
		return 0, nil, err
	}
	return election.Rev(), election.Resign, nil
}

// Uses the resource repeatedly. A call with an unknown outcome may take effect later and conflict with later calls of its
// session, so a new session follows.
func work(name string, client *clientv3.Client, leases *watchedLeases, ttl int, take turn, of *resource) {
	for !hasToStop() {
		session, err := open(client, ttl)
		if err != nil {
			failed()
			time.Sleep(restsFor)
			continue
		}
		own := &vouched{Session: session, leases: leases}
		guard.Lock()
		counted.Sessions++
		guard.Unlock()
		go own.watch(name)
		for !hasToStop() && once(name, own, take, of) {
			time.Sleep(restsFor)
		}
		own.end()
	}
}

// The context lasts as long as the session, so the timeout applies only to opening it.
func open(client *clientv3.Client, ttl int) (*concurrency.Session, error) {
	ctx, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(patience, cancel)
	defer late.Stop()
	return concurrency.NewSession(client, concurrency.WithTTL(ttl), concurrency.WithContext(ctx))
}

// Uses the resource once. Returns whether the session can continue.
func once(name string, session *vouched, take turn, of *resource) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	token, leave, err := take(ctx, session.Session)
	if err != nil {
		failed()
		return false
	}
	user := &use{name, token, session}
	isIn := of.enter(user)
	for times := 0; isIn && times < useTimes; times++ {
		time.Sleep(useEvery)
		isIn = of.take(user)
	}
	of.leave(user)
	leaving, cancelLeaving := context.WithTimeout(context.Background(), patience)
	defer cancelLeaving()
	if err := leave(leaving); err != nil {
		failed()
		return false
	}
	return isIn
}

func failed() {
	guard.Lock()
	defer guard.Unlock()
	counted.Failed++
}

func main() {
	endpoints := flag.String("endpoints", "", "where the members listen, with commas between them")
	clients := flag.Int("clients", 3, "how many want the mutex, and how many the election")
	ttl := flag.Int("ttl", 20, "of their sessions, in seconds")
	flag.DurationVar(&patience, "patience", 10*time.Second, "of a call")
	flag.Parse()

	mutex := &resource{name: "mutex", entries: &counted.Mutex}
	election := &resource{name: "election", entries: &counted.Election}
	var group sync.WaitGroup
	for number := 0; number < *clients; number++ {
		config := clientv3.Config{Endpoints: strings.Split(*endpoints, ","), DialTimeout: dialTime}
		client, err := clientv3.New(config)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		leases := &watchedLeases{LeaseClient: clientv3.RetryLeaseClient(client), ends: map[int64]time.Time{}}
		client.Lease = clientv3.NewLeaseFromLeaseClient(leases, client, dialTime+time.Second)
		group.Add(2)
		go func(number int) {
			defer group.Done()
			work(fmt.Sprintf("locker %d", number), client, leases, *ttl, lock, mutex)
		}(number)
		go func(number int) {
			defer group.Done()
			work(fmt.Sprintf("candidate %d", number), client, leases, *ttl, lead, election)
		}(number)
	}

	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		atomic.StoreInt32(&stopping, 1)
		group.Wait()
		close(ended)
	}()
	for {
		select {
		case <-ended:
			say()
			return
		case <-time.After(sayEvery):
			say()
		}
	}
}
