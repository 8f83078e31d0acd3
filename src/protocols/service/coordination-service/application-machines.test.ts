/** Checks user-defined state machines in replicas, whether they are defined or not, and correct or not. */

import { describe, expect, it } from "vitest";
import { type OneReplica, oneReplica, readAll } from "../../../../test/protocols/service/one-replica.ts";
import type { Chunk } from "../../../core/chunk.ts";
import type { Context } from "../../../core/protocol.ts";
import { dispatch } from "../../../core/step.ts";
import { valuesOf } from "../keyspace/table.ts";
import { areSound, catchUpAll, type MachineDefinition } from "./machines.ts";
import { type Operation, type SessionOperation, STATE_MACHINE_VERSION } from "./operations.ts";
import { type Replica, type ReplicaOptions, replica, replicaDefaults } from "./replica.ts";
import type { MachineState } from "./state.ts";

function withSession(limits = {}, machines = {}): OneReplica {
  const replica = oneReplica(limits, machines);
  replica.open(0);
  return replica;
}

describe("state machines of the application", () => {
  const sum: MachineDefinition = {
    init: () => 0,
    apply(state, command) {
      if (command === "fail") throw new Error("no");
      const next = (state as number) + Number(command);
      return [next, `now ${next}`];
    },
    ask: (state) => String(state),
  };
  const execute = (command: string): Operation => ({ type: "execute", machine: "sum", command });
  const question = { type: "ask", machine: "sum", question: "" } as const;

  it("apply their commands, and one that throws changes nothing", () => {
    const { apply, ask } = withSession({}, { sum });
    expect(ask(question)).toEqual({ type: "answered", answer: "0" });
    expect(apply(0, execute("2"))).toEqual({ type: "executed", result: "now 2" });
    expect(apply(0, execute("fail"))).toEqual({ type: "refused", code: "machine-failed", reason: "no" });
    expect(apply(0, execute("3"))).toEqual({ type: "executed", result: "now 5" });
    expect(ask(question)).toEqual({ type: "answered", answer: "5" });
  });

  it("that are defined later catch up with all earlier commands", () => {
    const machines: Record<string, MachineDefinition> = {};
    const { apply, ask, data } = withSession({ maxPendingBytes: 1_000_000 }, machines);
    expect(apply(0, execute("2"))).toEqual({ type: "unknown" });
    expect(ask(question)).toMatchObject({ code: "unknown-machine" });
    machines.sum = sum;
    expect(ask(question)).toEqual({ type: "answered", answer: "2" });
    expect(apply(0, execute("3"))).toEqual({ type: "executed", result: "now 5" });
    delete machines.sum;
    for (let many = 0; many < 11_000; many++) apply(0, execute("1"));
    expect(valuesOf(data.machines)[0]).toMatchObject({ pending: { length: 11_000 }, pendingBytes: 11_000 * 35 });
    machines.sum = sum;
    expect(apply(0, execute("1"))).toEqual({ type: "executed", result: "now 11006" });
    expect(valuesOf(data.machines)[0]).toMatchObject({ pending: [], pendingBytes: 0 });
  });

  it("that are not defined here stop the replica before it would have to drop their commands", () => {
    const { apply, data, events } = withSession({ maxPendingBytes: 1_000 });
    events();
    apply(0, { type: "execute", machine: "other", command: "x".repeat(60) });
    expect(events()).toEqual([]); // Pending commands are reported only from an eighth of the limit.
    apply(0, { type: "execute", machine: "other", command: "x".repeat(308) });
    apply(0, execute("x".repeat(400)));
    apply(0, execute(""));
    expect(events()).toEqual([
      { type: "commandsWait", machine: "other", bytes: 436, maxBytes: 1_000 },
      { type: "commandsWait", machine: "sum", bytes: 870, maxBytes: 1_000 },
      { type: "commandsWait", machine: "sum", bytes: 904, maxBytes: 1_000 },
    ]);
    const stopped = {
      code: "undefined-machine",
      message:
        'expected the state machine "sum" to be defined at this member, but it is not: 1040 bytes of commands are waiting for it, and the maximum is 1000. No data is lost: restart the member, and call replicated("sum", …) as soon as join() resolves, at every member',
    };
    expect(() => apply(0, execute("x".repeat(102)))).toThrow(expect.objectContaining(stopped));
    expect(valuesOf(data.machines).map(({ pending }) => pending?.length)).toEqual([2, 3]);
  });

  it("whose definition throws or returns no text fail, and change nothing", () => {
    const init = (): never => {
      throw new Error("no config");
    };
    const machines: Record<string, MachineDefinition> = {};
    const { apply, ask, data } = withSession({}, machines);
    machines.sum = { ...sum, init };
    const failed = { code: "machine-failed", reason: "no config" };
    expect(ask(question)).toMatchObject(failed);
    expect(apply(0, execute("1"))).toMatchObject(failed);
    delete machines.sum;
    apply(0, execute("2"));
    machines.sum = { ...sum, init };
    expect(ask(question)).toMatchObject(failed);
    catchUpAll({ data, limits: replicaDefaults }, machines);
    expect(valuesOf(data.machines)[0]).toMatchObject({ isDefined: false, pending: ["2"] });
    machines.sum = sum;
    expect(ask(question)).toEqual({ type: "answered", answer: "2" });
    machines.sum = { ...sum, ask: () => undefined as never };
    expect(ask(question)).toMatchObject({
      code: "machine-failed",
      reason: "expected the answer to be a text, got undefined",
    });
  });

  it("have limited space: a command that grows the state beyond the limit is refused without effect, one that shrinks it is not", () => {
    const texts: MachineDefinition = {
      init: () => "",
      apply: (state, command) => [
        command.startsWith("cut")
          ? (state as string).slice(0, Number(command.slice(3)))
          : `${state as string}${command}`,
        command === "answer" ? "x".repeat(70_000) : "",
      ],
      ask: (state) => String((state as string).length),
    };
    const { apply, ask, data } = withSession({ maxMachineBytes: 300_000 }, { sum: texts });
    const piece = "x".repeat(60_000);
    for (let at = 0; at < 4; at++) expect(apply(0, execute(piece))).toEqual({ type: "executed", result: "" });
    const results = Array.from({ length: 20 }, () => apply(0, execute(piece)));
    const done = results.findIndex(({ type }) => type === "refused");
    expect(done).toBeLessThan(8); // A large state is not measured after each command.
    const tooLarge = {
      type: "refused",
      code: "too-large",
      reason: "the state of a machine takes at most 300000 bytes as JSON",
    };
    expect(results.slice(done)).toEqual(Array(20 - done).fill(tooLarge));
    const length = ask(question);
    expect(apply(0, execute("answer"))).toMatchObject({ code: "too-large" });
    expect(ask(question)).toEqual(length);
    expect(apply(0, execute("cut10"))).toEqual({ type: "executed", result: "" });
    expect(apply(0, execute("cut0"))).toEqual({ type: "executed", result: "" });
    expect(apply(0, execute(piece))).toEqual({ type: "executed", result: "" });
    expect(JSON.stringify(data.machines).length).toBeLessThan(70_000);
  });

  it("are limited in number", () => {
    const { apply } = withSession({ maxMachines: 2 });
    for (const machine of ["a", "b"]) apply(0, { type: "execute", machine, command: "1" });
    expect(apply(0, { type: "execute", machine: "c", command: "1" })).toMatchObject({ code: "too-many" });
  });
});

describe("a state that is not plain data", () => {
  const faulty: MachineDefinition = {
    init: () => ({ best: 0 }),
    apply(state, command) {
      if (command === "result") throw new Error("no data");
      if (command === "keep") return [state, ""];
      return [{ best: Number(command), text: "x".repeat(70_000) }, "done"];
    },
    ask: (state) => JSON.stringify(state),
    fault: (state) => (Number.isNaN((state as { best: number }).best) ? "expected best to be a finite number" : null),
  };
  const execute = (command: string): Operation => ({ type: "execute", machine: "m", command });
  const refused = { code: "machine-failed", reason: "expected best to be a finite number" };
  const stateOf = ({ data }: OneReplica) => (valuesOf(data.machines)[0] as MachineState).state as { best: unknown };
  const best = (replica: OneReplica): unknown => stateOf(replica).best;

  it("is refused after each command, whether the state is measured or not", () => {
    const replica = withSession({ maxMachineBytes: 100_000 }, { m: faulty });
    const { apply } = replica;
    expect(apply(0, execute("NaN"))).toMatchObject(refused);
    for (const command of ["1", "2"]) expect(apply(0, execute(command))).toMatchObject({ type: "executed" });
    for (const _each of [1, 2, 3]) expect(apply(0, execute("NaN"))).toMatchObject(refused);
    expect(apply(0, execute("result"))).toMatchObject({ code: "machine-failed", reason: "no data" });
    expect(best(replica)).toBe(2);
  });

  it("is in no snapshot if a state was changed in place", () => {
    const replica = withSession({ maxMachineBytes: 100_000 }, { m: faulty });
    for (const command of ["1", "2"]) replica.apply(0, execute(command));
    expect(areSound(replica.data, { m: faulty })).toBe(true);
    stateOf(replica).best = Number.NaN;
    expect(areSound(replica.data, { m: faulty })).toBe(false);
  });
});

describe("snapshots of a replica", () => {
  /** Creates a replica that receives log entries one by one. At first no machine is defined. */
  function stage(given: Partial<ReplicaOptions>, machines: Record<string, MachineDefinition> = {}) {
    const protocol = replica(given, machines);
    const state = protocol.init(0, []);
    const saved: Chunk[][] = [];
    const emit = (event: Replica["event"]): void => void (event.type === "saved" && saved.push(event.snapshot));
    const none = (): void => {};
    const ctx = {
      self: 0,
      peers: [],
      emit,
      persist: none,
      setTimer: none,
      compact: none,
    } as unknown as Context<Replica>;
    const decided = (...operations: (Operation | SessionOperation)[]): void => {
      const index = state.index + 1;
      const numbers = { life: 1, round: 1, acknowledged: Math.max(0, index - 2), first: index };
      const operation = JSON.stringify({ type: "operations", ...numbers, operations });
      const command = { client: 1, sequence: index, operation };
      dispatch(protocol, state, { kind: "command", command: { type: "decided", index, command } }, ctx);
      while (state.saving !== null) dispatch(protocol, state, { kind: "timeout", timer: "save" }, ctx);
    };
    decided({ type: "begin", ttlMs: 1_000, version: STATE_MACHINE_VERSION });
    return { state, saved, decided };
  }
  const execute = (command: string): Operation => ({ type: "execute", machine: "m", command });
  const count: MachineDefinition = { init: () => 0, apply: (state) => [(state as number) + 1, ""] };

  it("contain the pending commands of a machine, and its state once it is defined, even if it is not used", () => {
    const machines: Record<string, MachineDefinition> = {};
    const { saved, decided } = stage({ snapshotChars: 1_000 }, machines);
    const fill = (): void => {
      for (let at = 0; at < 20; at++) decided({ type: "add", name: "c", by: 1 });
    };
    for (let at = 0; at < 3; at++) decided(execute("1"));
    fill();
    const last = (): unknown => valuesOf(readAll(saved.at(-1) ?? []).data.machines)[0];
    expect(last()).toMatchObject({ isDefined: false, pending: ["1", "1", "1"] });
    machines.m = count;
    for (let at = 0; at < 10; at++) fill();
    expect(last()).toMatchObject({ isDefined: true, state: 3, pending: [] });
  });

  it("are rare while pending commands run, even if the resulting state is small", () => {
    const machines: Record<string, MachineDefinition> = {};
    const { saved, decided, state } = stage({ snapshotChars: 1_000 }, machines);
    for (let at = 0; at < 400; at++) decided(execute("x".repeat(1_000)));
    const lastLength = (): number => (saved.at(-1) ?? []).reduce((sum, { length }) => sum + length, 0);
    const large = lastLength();
    expect(large).toBeGreaterThan(100_000);
    machines.m = count;
    const before = saved.length;
    for (let at = 0; at < 400; at++) decided(execute("x".repeat(1_000)));
    expect(lastLength()).toBeLessThan(10_000);
    expect(saved.length - before).toBeLessThan(8);
    for (let at = 0; at < 400; at++) decided(execute("x".repeat(1_000)));
    expect(state.saved).toBeLessThan(10_000); // Afterwards it is saved as often as usual.
  });

  it("are not taken of a state that was changed in place and is no longer plain data", () => {
    const inPlace: MachineDefinition = {
      init: () => ({ sum: 0 }),
      apply(state) {
        (state as { sum: unknown }).sum = Number.NaN;
        throw new Error("too late");
      },
      fault: (state) => (Number.isNaN((state as { sum: number }).sum) ? "expected sum to be a finite number" : null),
    };
    const { saved, decided } = stage({ snapshotChars: 1_000 }, { m: inPlace });
    for (let at = 0; at < 50; at++) decided({ type: "add", name: "c", by: 1 });
    const before = saved.length;
    expect(before).toBeGreaterThan(0);
    decided(execute("1"));
    for (let at = 0; at < 50; at++) decided({ type: "add", name: "c", by: 1 });
    expect(saved).toHaveLength(before);
  });
});
