/** The tours. Their texts are in texts.json, under the keys that `keysOf` returns. */
import type { Tour } from "./tour.ts";

const heartbeat: Tour = {
  name: "slow-or-dead",
  runs: [{ scenario: "heartbeat-pause" }, { scenario: "heartbeat-pause", fork: "162 crash 2" }],
  steps: [
    { at: "2: starts", nodes: [0, 1, 2] },
    { at: "2: pauses", nodes: [2] },
    {
      at: "1: emits suspected node 2",
      nodes: [0, 1],
      fields: ["peers.2"],
      ask: [
        { key: "a", shows: { headline: "Node 2 is suspected" } },
        { key: "b", shows: { headline: "No node is suspected" } },
      ],
    },
    { at: "1: emits restored node 2", nodes: [0, 1], fields: ["peers.2"] },
    { run: 1, at: "1: emits suspected node 2", nodes: [0, 1], fields: ["peers.2"] },
    { run: 1, at: "end", nodes: [2] },
  ],
};

const bully: Tour = {
  name: "silence",
  runs: [{ scenario: "bully-a-highest-crashed" }],
  steps: [
    { at: "6: starts", nodes: [7] },
    { at: "4: receives command call", nodes: [4, 5, 6, 7], fields: ["phase"] },
    {
      at: "6: receives election from 4",
      nodes: [5, 6],
      fields: ["phase"],
      ask: [
        { key: "a", shows: { headline: "while 5 leads" } },
        { key: "b", shows: { headline: "while 6 leads" } },
        { key: "c", shows: { headline: "while 7 leads" } },
      ],
    },
    { at: "6: times out: answer", nodes: [6, 7], fields: ["phase"] },
    { at: "end", nodes: [0, 1, 2, 3, 4, 5, 6], fields: ["leader"] },
  ],
};

const majority: Tour = {
  name: "majority",
  runs: [{ scenario: "bully-two-leaders-in-a-partition" }, { scenario: "epoch-bully-partition" }],
  steps: [
    { at: "3: receives election.coordinator from 4", nodes: [4] },
    {
      at: "4: fault: partition",
      nodes: [3, 4],
      ask: [
        { key: "a", shows: { headline: "Node 4 leads" } },
        { key: "b", shows: { headline: "Nodes 2 and 4 both lead" } },
        { key: "c", shows: { headline: "No node leads" } },
      ],
    },
    { at: "2: emits detector.suspected node 4", nodes: [2, 4], fields: ["election.leader"] },
    { at: "end", nodes: [2, 4], fields: ["election.leader"] },
    { run: 1, at: "4: fault: partition", nodes: [3, 4], fields: ["term"] },
    { run: 1, at: "4: emits deposed", nodes: [4], fields: ["phase"] },
    { run: 1, at: "2: emits elected leader 2", nodes: [0, 1, 2], fields: ["promised"] },
    { run: 1, at: "end", nodes: [2, 3, 4], fields: ["term"] },
  ],
};

const changRoberts: Tour = {
  name: "one-lap",
  runs: [{ scenario: "chang-roberts-ring-of-seven" }],
  steps: [
    { at: "1: receives command call", nodes: [1, 15] },
    { at: "15: receives election id 1", nodes: [15] },
    {
      at: "3: receives election id 15",
      nodes: [3, 17],
      ask: [
        { key: "a", shows: { happens: "17: sends election id 15" } },
        { key: "b", shows: { happens: "17: sends election id 17" } },
        { key: "c", shows: { never: "17: sends election" } },
      ],
    },
    { at: "17: receives election id 15", nodes: [17, 24] },
    { at: "24: receives election id 24", nodes: [24], fields: ["elected"] },
    { at: "end", nodes: [1, 3, 4, 9, 15, 17, 24], fields: ["elected"] },
  ],
};

const causal: Tour = {
  name: "received-not-delivered",
  runs: [{ scenario: "causal-answer-overtakes" }],
  steps: [
    { at: "0: emits workload.said", nodes: [0], fields: ["multicast.vector"] },
    { at: "1: emits multicast.delivered", nodes: [1], fields: ["multicast.vector"] },
    {
      at: "1: emits workload.said",
      nodes: [1, 2],
      fields: ["multicast.vector"],
      ask: [
        { key: "a", shows: { happens: "2: emits multicast.delivered" } },
        { key: "b", shows: { never: "2: emits multicast.delivered" } },
      ],
    },
    {
      at: "2: receives multicast.multicast vector [1,1,0]",
      nodes: [2],
      fields: ["multicast.vector", "multicast.heldBack"],
    },
    { at: "2: receives multicast.multicast vector [1,0,0]", nodes: [2], fields: ["multicast.vector"] },
  ],
};

const sameButWrong: Tour = {
  name: "same-but-wrong",
  runs: [{ scenario: "isis-breaks-fifo" }],
  steps: [
    { at: "0: emits workload.said payload 0.1", nodes: [0] },
    { at: "0: emits workload.said payload 0.2", nodes: [0], fields: ["workload.sent"] },
    {
      at: "2: receives multicast.multicast number 2",
      nodes: [1, 2],
      fields: ["multicast.heldBack"],
      ask: [
        { key: "a", shows: { happens: "1: emits multicast.delivered from 0 payload 0.1" } },
        { key: "b", shows: { happens: "1: emits multicast.delivered from 0 payload 0.2" } },
      ],
    },
    { at: "1: emits multicast.delivered", nodes: [1] },
    { at: "end", nodes: [0, 1, 2] },
  ],
};

const isis: Tour = {
  name: "nobody-alone",
  runs: [{ scenario: "isis-two-meet" }],
  steps: [
    { at: "2: emits workload.said", nodes: [0, 2] },
    { at: "1: receives multicast.multicast number 1 payload 0.1", nodes: [1], fields: ["multicast.proposed"] },
    {
      at: "2: receives multicast.multicast number 1 payload 0.1",
      nodes: [1, 2],
      fields: ["multicast.proposed"],
      ask: [
        { key: "a", shows: { happens: "2: emits multicast.delivered from 0" } },
        { key: "b", shows: { happens: "2: emits multicast.delivered from 2" } },
      ],
    },
    {
      at: "2: receives multicast.proposal view 0 number 1 place 2 from 0",
      nodes: [2],
      fields: ["multicast.agreed"],
    },
    { at: "0: emits multicast.delivered", nodes: [0] },
    { at: "end", nodes: [0, 1, 2] },
  ],
};

const ricartAgrawala: Tour = {
  name: "withheld-reply",
  runs: [{ protocol: "ricart-agrawala", nodes: "3", request: "0,2" }],
  steps: [
    { at: "2: sends mutex.request", nodes: [0, 2], fields: ["mutex.section"] },
    { at: "1: sends mutex.reply", nodes: [1] },
    {
      at: "2: sends mutex.reply",
      nodes: [0, 2],
      fields: ["mutex.section"],
      ask: [
        { key: "a", shows: { happens: "0: sends mutex.reply" } },
        { key: "b", shows: { never: "0: sends mutex.reply" } },
      ],
    },
    { at: "0: receives mutex.request", nodes: [0], fields: ["mutex.deferred"] },
    { at: "0: emits mutex.entered", nodes: [0], fields: ["mutex.deferred"] },
    { at: "0: emits mutex.exited", nodes: [0], fields: ["mutex.deferred"] },
    { at: "2: emits mutex.entered", nodes: [2] },
  ],
};

const maekawa: Tour = {
  name: "safe-quorums-deadlock",
  runs: [{ scenario: "maekawa-deadlock" }, { scenario: "maekawa-sanders-three-at-once" }],
  steps: [
    { at: "3: starts", nodes: [1, 2, 3], fields: ["mutex.voters"] },
    {
      at: "3: sends mutex.request",
      nodes: [1, 2, 3],
      fields: ["mutex.votedFor"],
      ask: [
        { key: "a", shows: { happens: "*: emits mutex.entered" } },
        { key: "b", shows: { never: "*: emits mutex.entered" } },
      ],
    },
    { at: "end", nodes: [1, 2, 3], fields: ["mutex.votedFor", "mutex.queue"] },
    { run: 1, at: "1: sends mutex.failed", nodes: [1, 3] },
    { run: 1, at: "3: sends mutex.vote", nodes: [2, 3] },
    { run: 1, at: "2: emits mutex.entered", nodes: [2] },
    { run: 1, at: "end", nodes: [1, 2, 3] },
  ],
};

const tokenRing: Tour = {
  name: "new-token-new-epoch",
  runs: [{ scenario: "token-ring-lost-with-its-holder" }, { scenario: "epoch-token-ring-lost-with-its-holder" }],
  steps: [
    { at: "2: emits mutex.entered", nodes: [2], fields: ["mutex"] },
    {
      at: "2: crashes",
      nodes: [2, 4],
      ask: [
        { key: "a", shows: { happens: "4: emits mutex.entered" } },
        { key: "b", shows: { never: "4: emits mutex.entered" } },
      ],
    },
    { at: "end", nodes: [2, 4], fields: ["mutex.token"] },
    { run: 1, at: "2: crashes", nodes: [1, 3, 4], fields: ["mutex.epoch"] },
    { run: 1, at: "4: sends mutex.requestVote epoch 2", nodes: [1, 3, 4], fields: ["mutex.promised"] },
    { run: 1, at: "4: emits mutex.entered", nodes: [4], fields: ["mutex.epoch"] },
    { run: 1, at: "2: emits mutex.entered", nodes: [2], fields: ["mutex.epoch"] },
  ],
};

const leases: Tour = {
  name: "leases-trust-clocks",
  runs: [{ scenario: "elected-server-holder-cut-off" }, { scenario: "elected-server-slow-clock" }],
  steps: [
    { at: "1: emits mutex.entered", nodes: [1, 5] },
    { at: "1: fault: partition", nodes: [1, 5] },
    { at: "1: emits mutex.lost", nodes: [1] },
    { at: "2: emits mutex.entered", nodes: [2], fields: ["workload.token"] },
    {
      run: 1,
      at: "1: fault: clock",
      nodes: [1],
      ask: [
        { key: "a", shows: { headline: "Node 2 is inside" } },
        { key: "b", shows: { headline: "Nodes 1 and 2 are inside" } },
      ],
    },
    { run: 1, at: "2: emits mutex.entered", nodes: [1, 2], fields: ["workload.token"] },
    { run: 1, at: "1: emits mutex.lost", nodes: [1] },
  ],
};

const paxos: Tour = {
  name: "safe-without-progress",
  runs: [
    { protocol: "paxos", variant: "duelling", nodes: "3", propose: "all", delay: "20", until: "600" },
    { scenario: "paxos-broken-by-a-lost-journal" },
  ],
  steps: [
    { at: "2: receives command propose", nodes: [0, 1, 2], fields: ["promised"] },
    { at: "0: receives nack", nodes: [0], fields: ["round"] },
    {
      at: "2: receives nack",
      nodes: [0, 1, 2],
      fields: ["round"],
      ask: [
        { key: "a", shows: { happens: "*: emits decided" } },
        { key: "b", shows: { never: "*: emits decided" } },
      ],
    },
    { at: "end", nodes: [0, 1, 2], fields: ["round", "decided"] },
    { run: 1, at: "0: emits decided", nodes: [0, 1], fields: ["accepted"] },
    { run: 1, at: "1: fault: journal lost", nodes: [1] },
    { run: 1, at: "1: sends promise", nodes: [1], fields: ["accepted"] },
    { run: 1, at: "2: emits decided", nodes: [0, 2], fields: ["decided"] },
  ],
};

const raft: Tour = {
  name: "raft-log",
  runs: [{ scenario: "raft-leader-crashes" }],
  steps: [
    { at: "0: emits log.led leader 0", nodes: [0], fields: ["log.term"] },
    { at: "0: receives log.forward", nodes: [0], fields: ["log.log.entries"] },
    { at: "0: emits log.decided index 2", nodes: [0, 1, 2], fields: ["log.log.entries"] },
    {
      at: "0: crashes",
      nodes: [1, 2, 3, 4],
      fields: ["log.log.entries"],
      ask: [
        { key: "a", shows: { never: "1: emits log.decided index 2 command" } },
        { key: "b", shows: { happens: "1: emits log.decided index 2 command" } },
      ],
    },
    { at: "1: receives log.appended term 2 matchIndex 3 from 3", nodes: [1], fields: ["log.term", "log.log.entries"] },
    { at: "0: starts", nodes: [0], fields: ["log.log.entries"] },
    { at: "0: receives log.appendEntries", nodes: [0, 1], fields: ["log.term"] },
  ],
};

const generals: Tour = {
  name: "generals",
  runs: [
    { scenario: "byzantine-generals-three-commander-lies" },
    { scenario: "byzantine-generals-four-commander-lies" },
  ],
  steps: [
    { at: "0: receives command propose", nodes: [0] },
    { at: "2: receives order path [0] ", nodes: [1, 2], fields: ["heard"] },
    {
      at: "1: receives order path [0,2]",
      nodes: [1, 2],
      fields: ["heard"],
      ask: [
        { key: "a", shows: { unbroken: "IC1 agreement" } },
        { key: "b", shows: { broken: "IC1 agreement" } },
      ],
    },
    { at: "end", nodes: [1, 2], fields: ["decided"] },
    { run: 1, at: "0: receives command propose", nodes: [0] },
    { run: 1, at: "2: receives order path [0,3]", nodes: [1, 2, 3], fields: ["heard"] },
    { run: 1, at: "end", nodes: [1, 2, 3], fields: ["decided"] },
  ],
};

const pbft: Tour = {
  name: "view-change",
  runs: [{ scenario: "pbft-faulty-primary" }],
  steps: [
    { at: "3: receives command client.use", nodes: [0, 1, 2, 3] },
    { at: "3: times out: log.retransmit", nodes: [1, 2, 3] },
    {
      at: "3: sends log.viewChange",
      nodes: [1, 2, 3],
      ask: [
        { key: "a", shows: { happens: "0: sends log.newView" } },
        { key: "b", shows: { happens: "1: sends log.newView" } },
        { key: "c", shows: { happens: "3: sends log.newView" } },
      ],
    },
    { at: "1: sends log.newView", nodes: [1] },
    { at: "3: receives log.newView", nodes: [2, 3] },
    { at: "end", nodes: [1, 2, 3] },
  ],
};

const twoPhaseCommit: Tour = {
  name: "blocking-window",
  runs: [{ scenario: "two-phase-commit-blocked" }],
  steps: [
    { at: "0: sends voteRequest", nodes: [0, 1, 2, 3] },
    { at: "3: sends vote", nodes: [1, 2, 3] },
    {
      at: "0: crashes",
      nodes: [1, 2, 3],
      ask: [
        { key: "a", shows: { headline: "decided “commit”" } },
        { key: "b", shows: { headline: "decided “abort”" } },
        { key: "c", shows: { headline: "No node has decided yet" } },
      ],
    },
    { at: "3: sends inquiry", nodes: [1, 2, 3] },
    { at: "0: starts", nodes: [0] },
    { at: "end", nodes: [1, 2, 3] },
  ],
};

export const tours: readonly Tour[] = [
  heartbeat,
  bully,
  majority,
  changRoberts,
  causal,
  sameButWrong,
  isis,
  ricartAgrawala,
  maekawa,
  tokenRing,
  leases,
  paxos,
  raft,
  generals,
  pbft,
  twoPhaseCommit,
];

/** Returns the keys of all texts of a tour, as used by `textOf`. */
export function keysOf({ name, steps }: Tour): string[] {
  const choices = steps.flatMap(({ ask = [] }) => ask.map(({ key }) => `${name}.choice.${key}`));
  return [
    `${name}.title`,
    `${name}.about`,
    ...steps.map((_step, place) => `${name}.${place + 1}`),
    ...(choices.length === 0 ? [] : [`${name}.ask`]),
    ...choices,
  ];
}
