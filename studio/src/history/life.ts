/**
 * The life of one node's process as a sequence of stretches: running, paused or stopped, leading or not. The evidence
 * comes from the node's trace and from the supervisor's state, and may be slightly out of order.
 */
import type { NodePicture } from "../../../src/cluster/feed.ts";
import type { View } from "../../../src/core/protocol.ts";
import {
  isSameSpan,
  ledView,
  type PlacedView,
  type Position,
  type Span,
  type Spans,
  spanOf,
} from "../../../src/protocols/presentation.ts";
import { spansOf } from "../../../src/trace/diagram/diagram.ts";
import { differenceOf } from "../../../src/trace/standing.ts";
import { HoldBack } from "./hold-back.ts";
import { roleText } from "./phrase-book.ts";

export type Condition = "running" | "paused" | "gone";

interface Evidence {
  readonly at: number;
  readonly condition?: Condition;
  readonly view?: View | null;
}

export interface Stretch {
  readonly from: number;
  /** When the stretch ends. Infinity while it lasts. */
  readonly to: number;
  readonly condition: Condition;
  readonly leads: boolean;
  readonly role: string | null;
}

export type LastingState = Span & Pick<Stretch, "from" | "to"> & { readonly node: number };

type Standing = Pick<Stretch, "condition" | "leads" | "role">;

const isSame = (a: Standing, b: Standing): boolean =>
  a.condition === b.condition && a.leads === b.leads && a.role === b.role;

/** The maximum number of pieces of evidence per node. */
const MAX_EVIDENCE = 600;
/** How long positions are kept, and how many older ones accumulate before they are removed together. */
const [PLACED_MS, KEPT_POSITIONS] = [2_000, 64];
/** The role in views that have been reduced to their leader. */
const UNTOLD = "";

export class Life {
  readonly node: number;
  readonly holdBack: HoldBack;
  /** The current state of the node's replicated log. Null if it has none or its process has stopped. */
  log: View["log"] | null = null;
  /** The current signatures. Null if nothing is signed or the process has stopped. */
  certificates: View["certificates"] | null = null;
  /** Recent positions of the node in the topology, oldest first. */
  #positions: { readonly at: number; readonly position: Position }[] = [];
  readonly #spans: Spans;
  #evidence: Evidence[] = [];
  /** Two cached views of the evidence. Null after new evidence. */
  #stretches: readonly Stretch[] | null = null;
  #states: readonly LastingState[] | null = null;

  /** @param spans defines which states are lasting states */
  constructor(node: number, spans: Spans) {
    this.node = node;
    this.#spans = spans;
    this.holdBack = new HoldBack(node);
  }

  started(at: number): void {
    this.#lose(at);
    this.#insert({ at, condition: "running", view: null });
  }

  crashed(at: number): void {
    this.#lose(at);
    this.#insert({ at, condition: "gone", view: null });
  }

  viewed(at: number, placed: PlacedView): void {
    const view = ledView(placed);
    const before = this.#lastView();
    if (view.held !== undefined) this.holdBack.become(at, view.held);
    this.log = view.log ?? null;
    this.certificates = view.certificates ?? null;
    this.#place(at, placed.position ?? {});
    if (differenceOf(before, view) === "standing") this.#insert({ at, view });
  }

  paused(at: number): void {
    this.#insert({ at, condition: "paused" });
  }

  resumed(at: number): void {
    this.#insert({ at, condition: "running" });
  }

  /** Derives the state before the first piece of evidence, either from that evidence or from the current state. */
  supposeBefore(picture: NodePicture): void {
    const first = this.#evidence.find((each) => each.condition !== undefined);
    const now: Condition = picture.process === "running" || picture.process === "paused" ? picture.process : "gone";
    const opposite: Condition = first?.condition === "gone" ? "running" : "gone";
    this.holdBack.supposeBefore(picture.view?.held);
    this.log ??= picture.view?.log ?? null;
    this.certificates ??= picture.view?.certificates ?? null;
    const unseen = this.#evidence.every((each) => each.view === undefined);
    const { view }: { readonly view: PlacedView | null } = picture;
    if (unseen) this.#place(-Infinity, view?.position ?? {});
    this.#evidence.unshift({
      at: -Infinity,
      condition: first === undefined ? now : opposite,
      view: unseen ? picture.view : null,
    });
    [this.#stretches, this.#states] = [null, null];
  }

  stretches(): readonly Stretch[] {
    this.#stretches ??= this.#lasting(({ condition, view }): Standing => {
      const leads = condition !== "gone" && view?.leader === this.node;
      const role = condition === "gone" || view?.role === UNTOLD ? null : view && roleText(view.role);
      return { condition, leads, role };
    }, isSame).map(({ from, to, value }) => ({ from, to, ...value }));
    return this.#stretches;
  }

  /** Returns the node's long-lived states, as declared by its protocol. */
  states(): readonly LastingState[] {
    this.#states ??= this.#lasting(
      ({ condition, view }) => (condition === "gone" || view === null ? null : spanOf(this.#spans, view, this.node)),
      isSameSpan,
    ).flatMap(({ from, to, value }) => (value === null ? [] : [{ node: this.node, from, to, ...value }]));
    return this.#states;
  }

  #lasting<T>(
    look: (now: { readonly condition: Condition; readonly view: View | null }) => T,
    areSame: (a: T, b: T) => boolean,
  ) {
    let condition: Condition = "gone";
    let view: View | null = null;
    const changes = this.#evidence.map((evidence) => {
      condition = evidence.condition ?? condition;
      if (evidence.view !== undefined) view = evidence.view;
      return { at: evidence.at, value: look({ condition, view }) };
    });
    return spansOf(changes, Infinity, areSame);
  }

  /** Discards evidence before `at`, but keeps the state at that time. */
  forget(at: number): void {
    this.holdBack.forget(at);
    if ((this.#evidence[1]?.at ?? Infinity) > at) return;
    const standing = this.stretchAt(at);
    const old = this.#evidence.filter((each) => each.at <= at);
    const view = old.findLast((each) => each.view !== undefined)?.view ?? null;
    this.#evidence = [
      { at: -Infinity, condition: standing?.condition ?? "gone", view },
      ...this.#evidence.filter((each) => each.at > at),
    ];
    [this.#stretches, this.#states] = [null, null];
  }

  /** Returns the position at a recent moment. */
  positionAt(at: number): Position {
    return this.#positions.findLast((each) => each.at <= at)?.position ?? {};
  }

  stretchAt(at: number): Stretch | undefined {
    return this.stretches().find((each) => each.from <= at && at < each.to);
  }

  #lose(at: number): void {
    this.holdBack.lose(at);
    this.log = null;
    this.certificates = null;
    this.#place(at, {});
  }

  #place(at: number, position: Position): void {
    this.#positions.push({ at, position });
    const first = this.#positions.findLastIndex((each) => each.at < at - PLACED_MS);
    if (first > KEPT_POSITIONS) this.#positions.splice(0, first);
  }

  #insert(evidence: Evidence): void {
    const after = this.#evidence.findLastIndex((each) => each.at <= evidence.at);
    this.#evidence.splice(after + 1, 0, evidence);
    [this.#stretches, this.#states] = [null, null];
    if (this.#evidence.length > 2 * MAX_EVIDENCE) this.#thinOut();
  }

  #lastView(): View | null {
    return this.#evidence.findLast((each) => each.view !== undefined)?.view ?? null;
  }

  /** Reduces the older half of the evidence to leaders and terms, because roles may change with every message. */
  #thinOut(): void {
    const older = this.#evidence.splice(0, MAX_EVIDENCE);
    let led: string | null = null;
    const kept = older.flatMap((each): Evidence[] => {
      if (each.view === undefined || each.view === null) {
        led = null;
        return [each];
      }
      const leads = `${each.view.leader} ${each.view.term}`;
      const isSame = leads === led;
      led = leads;
      const view = { ...each.view, role: UNTOLD };
      if (!isSame) return [{ ...each, view }];
      return each.condition === undefined ? [] : [{ at: each.at, condition: each.condition }];
    });
    this.#evidence.unshift(...kept);
  }
}
