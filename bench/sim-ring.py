"""The election of sim-ring.ts on SimPy 2: a process and a store for each node, a process for each message in transit."""

import sys
import time

from SimPy.Simulation import Process, Store, activate, get, hold, initialize, put, simulate

count = int(sys.argv[1])
initialize()
ring = list(range(count - 1, -1, -1))
inboxes = [Store() for _ in ring]
elected = [None] * count
messages = 0


class Travel(Process):
    def run(self, place, message):
        yield hold, self, 10
        yield put, self, inboxes[place], [message]


def send(place, kind, node):
    global messages
    messages += 1
    travel = Travel()
    activate(travel, travel.run((place + 1) % count, (kind, node)))


class Node(Process):
    def run(self, place):
        own = ring[place]
        is_participant = True
        send(place, "election", own)
        while True:
            yield get, self, inboxes[place], 1
            kind, node = self.got[0]
            if kind == "election":
                if node > own:
                    is_participant = True
                    send(place, kind, node)
                elif node < own:
                    if not is_participant:
                        is_participant = True
                        send(place, kind, own)
                else:
                    is_participant = False
                    elected[place] = own
                    send(place, "elected", own)
            elif node != own:
                is_participant = False
                elected[place] = node
                send(place, kind, node)


for each in range(count):
    node = Node()
    activate(node, node.run(each))
began = time.perf_counter()
simulate(until=1e9)
seconds = time.perf_counter() - began
assert set(elected) == {count - 1}
print(messages, seconds)
