/** Checks all defects of PBFT certificates: replicas accept only complete ones. */
import { describe, expect, it } from "vitest";
import type { Context, NodeId } from "../../../core/protocol.ts";
import { idealSignatures, type Signed, sign } from "../../../core/signatures.ts";
import { step } from "../../../core/step.ts";
import {
  checkpointShape,
  commitShape,
  digestOf,
  isPreparedBy,
  isProof,
  NOTHING,
  prePrepareShape,
  prepareShape,
  replyShape,
  requestShape,
  viewChangeShape,
} from "./certificates.ts";
import { type Pbft, type PbftOptions, pbft } from "./pbft.ts";
import type { Assignment, Certificate, Checkpoint, Reply, ViewChange } from "./vocabulary.ts";

const REPLICAS = [0, 1, 2, 3];
const signer = (self: NodeId) => ({ self, signatures: idealSignatures(self) });
const ctx = { ...signer(3), peers: [0, 1, 2] } as unknown as Context<Pbft>;

function receiving(options: Partial<PbftOptions> = {}, self: NodeId = 3, nodes: readonly NodeId[] = REPLICAS) {
  const protocol = pbft(options);
  const peers = nodes.filter((node) => node !== self);
  let state = protocol.init(self, peers);
  const events: string[] = [];
  return {
    events,
    get state() {
      return state;
    },
    receive(from: NodeId, message: Pbft["message"]) {
      const taken = step(protocol, { self, peers }, state, {
        kind: "receive",
        from,
        message,
      });
      state = taken.state;
      for (const effect of taken.effects) if (effect.kind === "emit") events.push(effect.event.type);
    },
    command(command: Pbft["command"]) {
      const taken = step(protocol, { self, peers }, state, {
        kind: "command",
        command,
      });
      state = taken.state;
    },
  };
}

const request = sign(signer(1), requestShape, { sequence: 1, operation: "append x" });
const DIGEST = digestOf([request]);
const assignment = (more: Partial<Assignment> = {}): Assignment => ({ view: 0, sequence: 1, digest: DIGEST, ...more });
const prePrepare = (by: NodeId, more: Partial<Assignment> = {}) => sign(signer(by), prePrepareShape, assignment(more));
const prepare = (by: NodeId, more: Partial<Assignment> = {}) => sign(signer(by), prepareShape, assignment(more));
const commit = (by: NodeId, more: Partial<Assignment> = {}) => sign(signer(by), commitShape, assignment(more));
const checkpoint = (by: NodeId, more: Partial<Checkpoint> = {}) =>
  sign(signer(by), checkpointShape, { sequence: 16, digest: DIGEST, ...more });
/** Returns a value that node 3 signs in the name of a different node. */
const inTheNameOf = <T>(by: NodeId, signed: Signed<T>): Signed<T> => ({ ...signed, by });

const prepared = (more: Partial<Certificate> = {}): Certificate => ({
  prePrepare: prePrepare(0),
  prepares: [prepare(1), prepare(2)],
  ...more,
});

describe("pbft: a prepared certificate is the pre-prepare of the primary and prepares of 2f backups", () => {
  const state = pbft().init(3, [0, 1, 2]);

  it("is accepted if complete", () => {
    expect(isPreparedBy(state, prepared(), ctx)).toBe(true);
  });

  it.each<[string, Partial<Certificate>]>([
    ["2f replicas in all", { prepares: [prepare(1)] }],
    ["one backup twice", { prepares: [prepare(1), prepare(1)] }],
    ["a prepare of the primary", { prepares: [prepare(0), prepare(1)] }],
    ["a pre-prepare of a backup", { prePrepare: prePrepare(3) }],
    ["a prepare for another digest", { prepares: [prepare(1), prepare(2, { digest: NOTHING })] }],
    ["a prepare of another view", { prepares: [prepare(1), prepare(2, { view: 4 })] }],
    ["a prepare for another sequence number", { prepares: [prepare(1), prepare(2, { sequence: 2 })] }],
    ["a pre-prepare for another digest", { prePrepare: prePrepare(0, { digest: NOTHING }) }],
    ["a prepare signed by another", { prepares: [prepare(1), inTheNameOf(2, prepare(3))] }],
    ["a pre-prepare signed by another", { prePrepare: inTheNameOf(0, prePrepare(3)) }],
    ["a commit for a prepare", { prepares: [prepare(1), commit(2)] }],
    ["a prepare of a node that is not a replica", { prepares: [prepare(1), prepare(7)] }],
  ])("rejects one with %s", (_what, more) => {
    expect(isPreparedBy(state, prepared(more), ctx)).toBe(false);
  });
});

describe("pbft: a stable checkpoint is signed by 2f + 1 replicas", () => {
  const state = pbft().init(3, [0, 1, 2]);
  const proof = [checkpoint(0), checkpoint(1), checkpoint(2)];

  it("is accepted if complete; the initial state needs no proof", () => {
    expect(isProof(state, 16, proof, ctx)).toBe(true);
    expect(isProof(state, 0, [], ctx)).toBe(true);
  });

  it.each<[string, number, Signed<Checkpoint>[]]>([
    ["2f replicas", 16, proof.slice(1)],
    ["no replica", 16, []],
    ["one replica twice", 16, [checkpoint(0), checkpoint(0), checkpoint(1)]],
    ["another digest among them", 16, [checkpoint(0), checkpoint(1), checkpoint(2, { digest: NOTHING })]],
    ["another sequence number among them", 16, [checkpoint(0), checkpoint(1), checkpoint(2, { sequence: 32 })]],
    ["another sequence number than is claimed", 32, proof],
    ["a signature of another", 16, [checkpoint(0), checkpoint(1), inTheNameOf(2, checkpoint(3))]],
    ["a node that is not a replica", 16, [checkpoint(0), checkpoint(1), checkpoint(7)]],
    ["checkpoints for the initial state", 0, proof],
  ])("rejects one of %s", (_what, sequence, all) => {
    expect(isProof(state, sequence, all, ctx)).toBe(false);
  });

  it.each<[string, Signed<Checkpoint>[], number]>([
    ["2f + 1 replicas", proof, 16],
    ["2f replicas", proof.slice(1), 0],
    ["one replica, three times", [checkpoint(1), checkpoint(1), checkpoint(1)], 0],
    ["different digests", [checkpoint(0), checkpoint(1), checkpoint(2, { digest: NOTHING })], 0],
    ["a signature of another", [checkpoint(0), checkpoint(1), inTheNameOf(2, checkpoint(3))], 0],
  ])("checkpoints of %s set the goal of a lagging replica to %j", (_what, all, goal) => {
    const replica = receiving();
    for (const each of all) replica.receive(each.by, { type: "checkpoint", checkpoint: each });
    expect(replica.state.goal?.sequence ?? 0).toBe(goal);
  });
});

describe("pbft: a batch is committed by 2f + 1 replicas, and prepared by the primary and 2f backups", () => {
  const committed = (commits: readonly Signed<Assignment>[]): boolean => {
    const replica = receiving();
    replica.receive(0, { type: "prePrepare", prePrepare: prePrepare(0), requests: [request] });
    for (const each of commits) replica.receive(each.by, { type: "commit", commit: each });
    expect(replica.events.includes("decided")).toBe(replica.state.executed === 1);
    return replica.state.executed === 1;
  };

  it.each<[boolean, string, Signed<Assignment>[]]>([
    [true, "2f + 1 replicas", [commit(0), commit(1), commit(2)]],
    [false, "2f replicas", [commit(0), commit(1)]],
    [false, "one replica, three times", [commit(1), commit(1), commit(1)]],
    [false, "different views", [commit(0), commit(1), commit(2, { view: 4 })]],
    [false, "different digests", [commit(0), commit(1), commit(2, { digest: NOTHING })]],
    [false, "a signature of another", [commit(0), commit(1), inTheNameOf(2, commit(3))]],
    [false, "a prepare for a commit", [commit(0), commit(1), prepare(2)]],
  ])("%j: commits of %s", (isCommitted, _what, commits) => {
    expect(committed(commits)).toBe(isCommitted);
  });

  it.each<[boolean, string, Signed<Assignment>[]]>([
    [true, "one other backup, of 2f with itself", [prepare(1)]],
    [false, "the primary", [prepare(0)]],
    [false, "itself", [prepare(3)]],
    [false, "a backup for another digest", [prepare(1, { digest: NOTHING })]],
    [false, "a backup in another view", [prepare(1, { view: 1 })]],
    [false, "a signature of another", [inTheNameOf(1, prepare(2))]],
  ])("%j: prepares of %s", (isPrepared, _what, prepares) => {
    const replica = receiving();
    replica.receive(0, { type: "prePrepare", prePrepare: prePrepare(0), requests: [request] });
    for (const each of prepares) replica.receive(1, { type: "prepare", prepare: each });
    expect(replica.state.slots[1]?.prepared != null).toBe(isPrepared);
  });

  it.each<[boolean, string, Signed<Assignment>, (typeof request)[]]>([
    [true, "of the primary", prePrepare(0), [request]],
    [false, "of a backup", prePrepare(1), [request]],
    [false, "of the primary of another view", prePrepare(1, { view: 1 }), [request]],
    [false, "with another batch", prePrepare(0), []],
    [
      false,
      "with a request that its client has not signed",
      prePrepare(0, { digest: digestOf([{ ...request, by: 2 }]) }),
      [{ ...request, by: 2 }],
    ],
    [false, "above the high watermark", prePrepare(0, { sequence: 33 }), [request]],
    [false, "signed by another", inTheNameOf(0, prePrepare(2)), [request]],
  ])("%j: a pre-prepare %s", (isAccepted, _what, each, requests) => {
    const replica = receiving();
    replica.receive(0, { type: "prePrepare", prePrepare: each, requests });
    expect(Object.values(replica.state.slots).some((slot) => slot.prePrepare !== null)).toBe(isAccepted);
  });
});

const viewChange = (by: NodeId, more: Partial<ViewChange> = {}) =>
  sign(signer(by), viewChangeShape, { view: 1, stable: 0, proof: [], prepared: [], ...more });

describe("pbft: a view change contains a certificate for each claim", () => {
  it.each<[boolean, string, Signed<ViewChange>]>([
    [true, "of a prepared batch", viewChange(2, { prepared: [prepared()] })],
    [true, "of nothing", viewChange(2)],
    [false, "signed by another", inTheNameOf(2, viewChange(1))],
    [
      false,
      "of a batch that 2f replicas prepared",
      viewChange(2, { prepared: [prepared({ prepares: [prepare(1)] })] }),
    ],
    [false, "of one sequence number twice", viewChange(2, { prepared: [prepared(), prepared()] })],
    [false, "of a stable checkpoint without proof", viewChange(2, { stable: 16 })],
    [
      false,
      "of a stable checkpoint that 2f replicas signed",
      viewChange(2, { stable: 16, proof: [checkpoint(0), checkpoint(1)] }),
    ],
    [false, "of a view that is not earlier", viewChange(2, { prepared: [preparedIn(1)] })],
    [false, "of a batch above its window", viewChange(2, { prepared: [preparedAt(33)] })],
    [
      false,
      "of a batch below its checkpoint",
      viewChange(2, { stable: 16, proof: [checkpoint(0), checkpoint(1), checkpoint(2)], prepared: [prepared()] }),
    ],
  ])("%j: one %s", (isAccepted, _what, each) => {
    const replica = receiving();
    replica.receive(2, { type: "viewChange", viewChange: each });
    expect(replica.state.viewChanges[2] !== undefined).toBe(isAccepted);
  });

  function preparedIn(view: number): Certificate {
    return { prePrepare: prePrepare(view, { view }), prepares: [prepare(2, { view }), prepare(3, { view })] };
  }
  function preparedAt(sequence: number): Certificate {
    return { prePrepare: prePrepare(0, { sequence }), prepares: [prepare(1, { sequence }), prepare(2, { sequence })] };
  }
});

describe("pbft: a new view follows from 2f + 1 view changes", () => {
  const all = [viewChange(0), viewChange(1, { prepared: [prepared()] }), viewChange(2)];
  const carried = prePrepare(1, { view: 1 });

  it.each<[boolean, string, Signed<ViewChange>[], Signed<Assignment>[]]>([
    [true, "with the prepared batches", all, [carried]],
    [true, "without batches if none is prepared", [viewChange(0), viewChange(1), viewChange(2)], []],
    [false, "without the prepared batches", all, []],
    [false, "with nothing in its place", all, [prePrepare(1, { view: 1, digest: NOTHING })]],
    [false, "with an assignment more", all, [carried, prePrepare(1, { view: 1, sequence: 2, digest: NOTHING })]],
    [false, "with the assignment of another view", all, [prePrepare(1)]],
    [false, "with an assignment that is not signed by its primary", all, [prePrepare(2, { view: 1 })]],
    [false, "with an assignment in its primary's name", all, [inTheNameOf(1, prePrepare(2, { view: 1 }))]],
    [false, "of 2f view changes", all.slice(0, 2), [carried]],
    [false, "of one view change twice", [all[1], all[1], all[2]] as Signed<ViewChange>[], [carried]],
    [false, "with a view change to another view", [...all.slice(0, 2), viewChange(2, { view: 5 })], [carried]],
    [false, "with a forged view change", [...all.slice(0, 2), inTheNameOf(2, viewChange(3))], [carried]],
    [
      false,
      "with a view change without its certificate",
      [viewChange(0), viewChange(1, { prepared: [prepared({ prepares: [prepare(1)] })] }), viewChange(2)],
      [carried],
    ],
  ])("%j: one %s", (isAccepted, _what, viewChanges, prePrepares) => {
    const replica = receiving();
    replica.receive(1, { type: "newView", view: 1, viewChanges, prePrepares });
    expect(replica.state.view === 1 && !replica.state.isChanging).toBe(isAccepted);
  });

  it("takes the certificate of the latest view", () => {
    const later = {
      prePrepare: prePrepare(1, { view: 1, digest: NOTHING }),
      prepares: [2, 3].map((by) => prepare(by, { view: 1, digest: NOTHING })),
    };
    const toTwo = [
      viewChange(0, { view: 2, prepared: [prepared()] }),
      viewChange(1, { view: 2 }),
      viewChange(3, { view: 2, prepared: [later] }),
    ];
    for (const [digest, isAccepted] of [
      [NOTHING, true],
      [DIGEST, false],
    ] as const) {
      const replica = receiving();
      replica.receive(2, {
        type: "newView",
        view: 2,
        viewChanges: toTwo,
        prePrepares: [prePrepare(2, { view: 2, digest })],
      });
      expect(replica.state.view === 2).toBe(isAccepted);
    }
  });
});

describe("pbft: a client on another node accepts f + 1 equal replies", () => {
  const reply = (by: NodeId, more: Partial<Reply> = {}) =>
    sign(signer(by), replyShape, { view: 0, client: 4, sequence: 1, result: "1", index: 1, ...more });

  it.each<[boolean, string, Signed<Reply>[]]>([
    [true, "of two replicas", [reply(0), reply(1)]],
    [false, "of one replica, twice", [reply(0), reply(0)]],
    [false, "with different results", [reply(0), reply(1, { result: "2" })]],
    [false, "with different places", [reply(0), reply(1, { index: 2 })]],
    [false, "to an earlier command", [reply(0), reply(1, { sequence: 0 })]],
    [false, "to another client", [reply(0), reply(1, { client: 3 })]],
    [false, "of a node that is not a replica", [reply(0), reply(4)]],
    [false, "signed by another", [reply(0), inTheNameOf(1, reply(0))]],
  ])("%j: replies %s", (isBelieved, _what, replies) => {
    const client = receiving({ clients: 1 }, 4, [0, 1, 2, 3, 4]);
    client.command({ type: "propose", command: { client: 4, sequence: 1, operation: "append x" } });
    for (const each of replies) client.receive(each.by, { type: "reply", reply: each });
    expect(client.events.includes("answered")).toBe(isBelieved);
  });
});
