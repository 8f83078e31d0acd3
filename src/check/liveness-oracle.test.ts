/** Compares the search for fair runs with an oracle that tries every set of states. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Protocol } from "../core/protocol.ts";
import { type Exploration, explore } from "./explore.ts";

const STATES = 6;
const TIMERS = ["a", "b", "c"] as const;
type Timer = (typeof TIMERS)[number];

/** A node that moves between states by timeouts of its armed timers. */
interface Machine {
  /** For each state, its armed timers. */
  readonly armed: readonly (readonly Timer[])[];
  /** For each state and timer, the successor after the timeout. */
  readonly leads: readonly (readonly number[])[];
  /** For each state and timer, whether the step rearms the timers that stay armed. */
  readonly renews: readonly (readonly boolean[])[];
  readonly given: readonly boolean[];
  readonly holds: readonly boolean[];
}

const perState = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: STATES, maxLength: STATES });
const perTimer = <T>(value: fc.Arbitrary<T>) => fc.array(value, { minLength: TIMERS.length, maxLength: TIMERS.length });
const machines: fc.Arbitrary<Machine> = fc.record({
  armed: perState(fc.subarray([...TIMERS])),
  leads: perState(perTimer(fc.nat(STATES - 1))),
  renews: perState(perTimer(fc.boolean())),
  given: perState(fc.boolean()),
  holds: perState(fc.boolean()),
});

/** A timeout: its timer, its successor, and the timers it arms. */
interface Step {
  readonly timer: Timer;
  readonly to: number;
  readonly sets: readonly Timer[];
}

function stepsOf({ armed, leads, renews }: Machine, from: number): Step[] {
  return (armed[from] as readonly Timer[]).map((timer) => {
    const which = TIMERS.indexOf(timer);
    const to = leads[from]?.[which] as number;
    const isNew = (each: Timer): boolean => each === timer || !armed[from]?.includes(each);
    const sets = (armed[to] as readonly Timer[]).filter((each) => isNew(each) || renews[from]?.[which]);
    return { timer, to, sets };
  });
}

type Automaton = { state: { at: number }; timer: Timer };

function protocolOf(machine: Machine): Protocol<Automaton> {
  const timeout =
    (timer: Timer) => (state: Automaton["state"], ctx: Parameters<NonNullable<Protocol<Automaton>["start"]>>[1]) => {
      const step = stepsOf(machine, state.at).find((each) => each.timer === timer) as Step;
      state.at = step.to;
      for (const each of TIMERS) if (!machine.armed[step.to]?.includes(each)) ctx.cancelTimer(each);
      for (const each of step.sets) ctx.setTimer(each, 1);
    };
  return {
    name: "automaton",
    init: () => ({ at: 0 }),
    start(_state, ctx) {
      for (const each of machine.armed[0] as readonly Timer[]) ctx.setTimer(each, 1);
    },
    timeout: { a: timeout("a"), b: timeout("b"), c: timeout("c") },
    shapes: {},
    source: "none",
    assumes: [],
    costs: [],
    view: () => ({ role: "automaton" }),
    properties: [
      {
        name: "promise",
        claim: "leads to",
        when: "leadsTo",
        given: ({ state }, node) => machine.given[state(node).at] === true,
        holds: ({ state }, node) => machine.holds[state(node).at] === true,
      },
    ],
  };
}

function reachable(machine: Machine, from: readonly number[], within: (state: number) => boolean): Set<number> {
  const found = new Set(from.filter(within));
  for (const state of found) for (const { to } of stepsOf(machine, state)) if (within(to)) found.add(to);
  return found;
}

/** Returns whether a run may visit exactly these states forever, or stop in the only one. */
function isFair(machine: Machine, states: readonly number[]): boolean {
  const steps = states.flatMap((state) => stepsOf(machine, state).filter(({ to }) => states.includes(to)));
  const isConnected = states.every((from) => {
    const others = reachable(machine, [from], (state) => states.includes(state));
    return states.every((state) => others.has(state));
  });
  if (!isConnected || (steps.length === 0 && machine.armed[states[0] as number]?.length !== 0)) return false;
  return TIMERS.every(
    (timer) =>
      !states.every((state) => machine.armed[state]?.includes(timer)) ||
      steps.some((step) => step.timer === timer || step.sets.includes(timer)),
  );
}

/** Returns whether a fair run can stay forever in some set of states with an open obligation. Tries every such set. */
function isBroken(machine: Machine): boolean {
  const isOpen = (state: number): boolean => machine.holds[state] !== true;
  const given = [...reachable(machine, [0], () => true)].filter((state) => machine.given[state]);
  const open = [...reachable(machine, given, isOpen)];
  for (let chosen = 1; chosen < 1 << open.length; chosen++)
    if (
      isFair(
        machine,
        open.filter((_, i) => (chosen >> i) & 1),
      )
    )
      return true;
  return false;
}

/** Expects the reported run to break the promise and to treat every timer fairly. */
function expectFairRun(machine: Machine, { path, loop }: Exploration<Automaton>): void {
  const at = path.map(({ states }) => states[0]?.at as number);
  const entry = at[(loop as number) - 1] as number;
  const round = [entry, ...at.slice(loop as number)];
  expect(round.at(-1)).toBe(entry);
  expect(isFair(machine, [...new Set(round)])).toBe(true);
  const lastHeld = at.findLastIndex((state) => machine.holds[state]);
  expect(at.slice(lastHeld + 1).some((state) => machine.given[state])).toBe(true);
  expect(lastHeld).toBeLessThan((loop as number) - 1);
}

it("finds a fair run that violates a property if and only if there is one", () => {
  let broken = 0;
  fc.assert(
    fc.property(machines, (machine) => {
      const found = explore({
        protocol: protocolOf(machine),
        nodes: [0],
        network: "fifo",
        timers: "free",
        begin: "together",
      });
      expect(found.verdict).toBe(isBroken(machine) ? "violated" : "holds");
      if (found.verdict === "holds") return;
      broken += 1;
      expectFairRun(machine, found);
    }),
    { numRuns: 2_000 },
  );
  expect(broken).toBeGreaterThan(100);
});
