/**
 * Whether what members have said of a channel is what it promises: in which view each message was delivered, to whom, and in
 * which order. Payloads are to be `BURST of SENDER NUMBER`, the bursts of a sender and the numbers in each counting up.
 */

import type { Order } from "../../src/cluster/services/channel-api.ts";
import type { NodeId } from "../../src/core/protocol.ts";
import {
  type GroupEntry,
  type Sending,
  virtualSynchrony,
  withCountedViews,
} from "../../src/history/virtual-synchrony.ts";
import type { Report } from "./channel-process.ts";

/** One run of one member, and all that it has said of one channel. */
export interface Run {
  readonly id: NodeId;
  readonly reports: readonly Report[];
}

/** What a run has said, as one sequence, and what does not fit into it. */
interface Account {
  readonly run: Run;
  readonly log: readonly GroupEntry[];
  readonly misplaced: readonly string[];
}

type Change = Pick<Extract<Report, { kind: "view" }>, "view" | "members" | "state">;
/** Who is in each view, as anybody has said it. */
type Known = ReadonlyMap<number, readonly NodeId[]>;

/** Every promise that was not kept, a sentence each. The runs of one member are to stand in the order in which they were. */
export function broken(runs: readonly Run[], order: Order): string[] {
  const said = runs.flatMap(views).filter(({ view }) => view !== null);
  const known: Known = new Map(said.map(({ view, members }) => [view as number, members]));
  const accounts = runs.map((run) => accountOf(run, known, wasKilled(run, runs)));
  const records = accounts.map(({ run, log }, incarnation) => ({ node: run.id, incarnation, log }));
  const sending = order === "total" ? undefined : "fifo"; // By itself it promises nothing of one sender's order.
  const isTotal = order === "total" || order === "causal-total";
  return [
    ...accounts.flatMap(({ misplaced }) => misplaced),
    ...virtualSynchrony(withCountedViews(records), { total: isTotal, sending }).map(({ what }) => what),
    ...runs.flatMap(foreign),
    ...runs.flatMap((run) => unheard(run, wasKilled(run, runs))),
    ...accounts.flatMap(unexcused),
    ...unsaid(runs),
    ...(isTotal ? [] : unstable(accounts)),
  ];
}

const views = ({ reports }: Run) => reports.filter((report) => report.kind === "view");
const deliveries = ({ reports }: Run) => reports.filter((report) => report.kind === "delivered");
const settled = ({ reports }: Run) => reports.flatMap((report) => (report.kind === "sent" ? report.settled : []));
const refused = ({ reports }: Run) => reports.flatMap((report) => (report.kind === "sent" ? report.refused : []));

/** It may have been about to say more. */
const wasKilled = ({ id, reports }: Run, runs: readonly Run[]): boolean =>
  runs.findLast((run) => run.id === id)?.reports !== reports && !reports.some(({ kind }) => kind === "left");

/**
 * A program is told of messages by one reader and of views by another. What comes in one turn each of them tells in its own
 * order: there a delivery is put into the view that it names, if the member was in that view in this turn. Of who was killed
 * in the middle of a turn, messages may be missing that came before a view of it.
 */
function accountOf(run: Run, known: Known, isCutOff: boolean): Account {
  const log: GroupEntry[] = [];
  const misplaced: string[] = [];
  let current: number | null = null;
  function go(change: Change): void {
    const { members, state } = change;
    const view = viewIn(change);
    if (state === "stalled" || view === current) return;
    if (view === null) log.push({ ejected: true });
    else log.push({ installed: { view, members } });
    current = view;
  }
  const turns = turnsOf(run);
  for (const [k, turn] of turns.entries()) {
    const changes = [...(k === 0 ? earlier(turn, known) : []), ...views(turn)];
    for (const { id, from, view, payload } of deliveries(turn)) {
      while (current !== view && changes.some((change) => viewIn(change) === view)) go(changes.shift() as Change);
      if (current === view) log.push({ delivered: { id, from, sent: sendingOf(payload) } });
      else misplaced.push(`member ${run.id}, in ${placeOf(current)}, delivered ${payload} as of view ${view}`);
    }
    const isWhole = !isCutOff || k < turns.length - 1;
    for (const change of changes) if (isWhole || viewIn(change) === null) go(change);
  }
  return { run, log, misplaced };
}

/** The view that the member is in from then on. While it is stalled nothing changes. */
const viewIn = ({ view, state }: Change): number | null => (state === "member" || state === "blocked" ? view : null);

const placeOf = (view: number | null): string => (view === null ? "no view" : `view ${view}`);

function turnsOf({ id, reports }: Run): Run[] {
  const turns = new Map<number, Report[]>();
  for (const report of reports) {
    if (report.kind !== "view" && report.kind !== "delivered") continue;
    const turn = turns.get(report.turn) ?? [];
    turns.set(report.turn, [...turn, report]);
  }
  return [...turns.values()].map((turn) => ({ id, reports: turn }));
}

/** The views that the member had been in before its program asked, as far as there are messages of them, or it is stalled there. */
function earlier(turn: Run, known: Known): Change[] {
  const [first] = views(turn);
  const present = first?.view ?? 0;
  const isStalled = first?.state === "stalled" && first.view !== null;
  const own = new Set(views(turn).map(viewIn));
  const named = new Set([...deliveries(turn).map(({ view }) => view), ...(isStalled ? [present] : [])]);
  const before = [...named]
    .filter((view) => !own.has(view) && known.has(view) && view <= present)
    .sort((a, b) => a - b);
  const numbers = [...known.keys()].sort((a, b) => a - b); // They have gaps: views are entries of the log.
  return before.flatMap((view, k) => {
    const stay = { view, members: known.get(view) ?? [], state: "member" as const };
    const goesOn = numbers[numbers.indexOf(view) + 1] === (before[k + 1] ?? present) || (isStalled && view === present);
    return goesOn ? [stay] : [stay, { ...stay, state: "outside" as const }]; // What was between is not known here.
  });
}

/** A payload's burst, sender and number. */
const partsOf = (payload: string): number[] => payload.split(/ of | /).map(Number);

function sendingOf(payload: string): Sending {
  const [burst = 0, sender, number = 0] = partsOf(payload);
  return { by: String(sender), number: burst * MOST_IN_A_BURST + number };
}

const MOST_IN_A_BURST = 1_000_000;

function foreign(run: Run): string[] {
  const forged = deliveries(run).filter(({ from, payload }) => partsOf(payload)[1] !== from);
  return forged.map(({ from, payload }) => `member ${run.id} was delivered ${payload} as from ${from}`);
}

/**
 * What was settled has been delivered to its sender, under the id and in the view that it was told. Who was killed may have been about
 * to say so.
 */
function unheard(run: Run, isCutOff: boolean): string[] {
  const heard = new Map(deliveries(run).map(({ id, view, payload }) => [payload, `${id} ${view}`]));
  const missing = settled(run).filter(({ id, view, payload }) => {
    const place = heard.get(payload);
    return place === undefined ? !isCutOff : place !== `${id} ${view}`;
  });
  return missing.map(({ id, payload }) => `${payload} was settled as ${id}, and its sender was not delivered that`);
}

/** What cannot be sent any more, or not be told of, is so because its sender has left or was left out. */
function unexcused({ run, log }: Account): string[] {
  const isExcused = (code: string): boolean =>
    code === "member-left" || (code === "send-uncertain" && log.some((entry) => "ejected" in entry));
  const others = refused(run).filter(({ code }) => !isExcused(code));
  return others.map(({ code, payload }) => `${payload} was refused, with ${code}`);
}

/** Nobody is delivered what a sender was told has never been sent. */
function unsaid(runs: readonly Run[]): string[] {
  const unsent = new Set(
    runs.flatMap(refused).flatMap(({ phase, payload }) => (phase === "never-sent" ? [payload] : [])),
  );
  return runs.flatMap((run) => {
    const said = deliveries(run).filter(({ payload }) => unsent.has(payload));
    return said.map(({ payload }) => `member ${run.id} was delivered ${payload}, which was never sent`);
  });
}

/** What every member of the view has is delivered to all of them that go on, whatever becomes of its sender. */
function unstable(accounts: readonly Account[]): string[] {
  const stable = accounts.flatMap(({ run }) => settled(run));
  return accounts.flatMap(({ run, log }) => {
    const had = hadWhenGoingOn(log);
    const missing = stable.filter(({ id, view }) => had.get(view)?.has(id) === false);
    return missing.map(
      ({ payload, view }) => `member ${run.id} went on from view ${view} without ${payload}, which was settled`,
    );
  });
}

/** What was delivered in each view from which the member went to the next. */
function hadWhenGoingOn(log: readonly GroupEntry[]): ReadonlyMap<number, ReadonlySet<string>> {
  const had = new Map<number, Set<string>>();
  let stay: { view: number; ids: Set<string> } | null = null;
  for (const entry of log) {
    if ("delivered" in entry) stay?.ids.add(entry.delivered.id);
    else {
      const isOn = "installed" in entry;
      if (isOn && stay !== null) had.set(stay.view, stay.ids);
      stay = isOn ? { view: entry.installed.view, ids: new Set() } : null;
    }
  }
  return had;
}
