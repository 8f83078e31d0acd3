/**
 * Checks the reports of members about a channel against its promises: the view, the receivers and the order of each
 * delivery. Payloads must be `BURST of SENDER NUMBER`. Each sender numbers its bursts, and the messages in each burst,
 * in ascending order.
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

/** One run of one member, and all its reports of one channel. */
export interface Run {
  readonly id: NodeId;
  readonly reports: readonly Report[];
}

/** The reports of a run as one sequence, and reports that do not fit into it. */
interface Account {
  readonly run: Run;
  readonly log: readonly GroupEntry[];
  readonly misplaced: readonly string[];
}

type Change = Pick<Extract<Report, { kind: "view" }>, "view" | "members" | "state">;
/** The members of each view, as reported by any run. */
type Known = ReadonlyMap<number, readonly NodeId[]>;

/** Returns every broken promise, one sentence each. The runs of one member must be in chronological order. */
export function broken(runs: readonly Run[], order: Order): string[] {
  const said = runs.flatMap(views).filter(({ view }) => view !== null);
  const known: Known = new Map(said.map(({ view, members }) => [view as number, members]));
  const accounts = runs.map((run) => accountOf(run, known, wasKilled(run, runs)));
  const records = accounts.map(({ run, log }, incarnation) => ({ node: run.id, incarnation, log }));
  const sending = order === "total" ? undefined : "fifo"; // Total order does not include sender order.
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

/** Whether the process was killed, so its last reports may be missing. */
const wasKilled = ({ id, reports }: Run, runs: readonly Run[]): boolean =>
  runs.findLast((run) => run.id === id)?.reports !== reports && !reports.some(({ kind }) => kind === "left");

/**
 * Puts the reports of a run into one sequence. A program receives messages and views through two iterators, and the
 * order between them is unknown within a turn. A delivery is put into the view that it names, if the member was in that
 * view during the turn. If the process was killed in the middle of a turn, messages that precede one of its views may
 * be missing.
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

/** Returns the member's view after a change. A stalled member keeps its view. */
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

/**
 * Returns the views of the member before its program began to read, if they have messages or the member is stalled in
 * one.
 */
function earlier(turn: Run, known: Known): Change[] {
  const [first] = views(turn);
  const present = first?.view ?? 0;
  const isStalled = first?.state === "stalled" && first.view !== null;
  const own = new Set(views(turn).map(viewIn));
  const named = new Set([...deliveries(turn).map(({ view }) => view), ...(isStalled ? [present] : [])]);
  const before = [...named]
    .filter((view) => !own.has(view) && known.has(view) && view <= present)
    .sort((a, b) => a - b);
  const numbers = [...known.keys()].sort((a, b) => a - b); // Numbers have gaps, since views are log entries.
  return before.flatMap((view, k) => {
    const stay = { view, members: known.get(view) ?? [], state: "member" as const };
    const goesOn = numbers[numbers.indexOf(view) + 1] === (before[k + 1] ?? present) || (isStalled && view === present);
    return goesOn ? [stay] : [stay, { ...stay, state: "outside" as const }]; // The views in between are unknown.
  });
}

/** Splits a payload into burst, sender and number. */
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
 * Returns violations of this rule: every settled message has been delivered to its sender, with the acknowledged id and
 * in that view. A killed process may not have reported the delivery.
 */
function unheard(run: Run, isCutOff: boolean): string[] {
  const heard = new Map(deliveries(run).map(({ id, view, payload }) => [payload, `${id} ${view}`]));
  const missing = settled(run).filter(({ id, view, payload }) => {
    const place = heard.get(payload);
    return place === undefined ? !isCutOff : place !== `${id} ${view}`;
  });
  return missing.map(({ id, payload }) => `${payload} was settled as ${id}, and its sender was not delivered that`);
}

/**
 * Returns violations of this rule: a message can be unsendable or uncertain only if its sender has left or was
 * excluded.
 */
function unexcused({ run, log }: Account): string[] {
  const isExcused = (code: string): boolean =>
    code === "member-left" || (code === "send-uncertain" && log.some((entry) => "ejected" in entry));
  const others = refused(run).filter(({ code }) => !isExcused(code));
  return others.map(({ code, payload }) => `${payload} was refused, with ${code}`);
}

/** Returns violations of this rule: no member delivers a message that was reported as never sent. */
function unsaid(runs: readonly Run[]): string[] {
  const unsent = new Set(
    runs.flatMap(refused).flatMap(({ phase, payload }) => (phase === "never-sent" ? [payload] : [])),
  );
  return runs.flatMap((run) => {
    const said = deliveries(run).filter(({ payload }) => unsent.has(payload));
    return said.map(({ payload }) => `member ${run.id} was delivered ${payload}, which was never sent`);
  });
}

/**
 * Returns violations of this rule: if every member of the view has a message, all continuing members deliver it, even
 * if its sender crashes.
 */
function unstable(accounts: readonly Account[]): string[] {
  const stable = accounts.flatMap(({ run }) => settled(run));
  return accounts.flatMap(({ run, log }) => {
    const had = hadWhenGoingOn(log);
    const missing = stable.filter(({ id, view }) => had.get(view)?.has(id) === false);
    return missing.map(
      ({ payload, view }) => `member ${run.id} left view ${view} without ${payload}, which was settled`,
    );
  });
}

/** Returns the deliveries in each view that the member left directly for the next one. */
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
