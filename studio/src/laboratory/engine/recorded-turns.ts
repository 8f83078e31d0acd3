/**
 * Converts the link faults in a recording to steps, so that forks continue with them, and to text that describes them
 * in spans.
 */
import type { Scenario } from "../../../../src/experiment/scenario/schema.ts";
import type { Trace } from "../../../../src/trace/file.ts";
import { type LinkFault, linkFaultIn, type SendingConditions } from "../../../../src/trace/link-model.ts";
import { islandsOf } from "../../history/network-news.ts";
import { type Conditions, conditionTexts, linkTexts, splitText, USUAL_MS } from "./network-turns.ts";

type Step = Scenario["steps"][number];

export interface RecordedTurn {
  readonly at: number;
  readonly step: Step;
  /** The network conditions from that time on. */
  readonly words: string;
}

/** How long it takes all nodes in a cluster to report the effect of one act. */
const TOGETHER_MS = 20;

export function recordedTurns({ header: { nodes, madeBy }, entries }: Trace): RecordedTurn[] {
  const links = new Links(nodes);
  const turns: RecordedTurn[] = [];
  let [steps, since]: [Step[], number] = [[], Number.NEGATIVE_INFINITY];
  const settle = (): void => {
    const words = links.words;
    turns.push(...steps.map((step) => ({ at: since, step, words })));
  };
  for (const entry of entries) {
    const fault = entry.kind === "fault" ? linkFaultIn(entry.what) : null;
    if (fault === null) continue;
    if (entry.at > since + (madeBy === "cluster" ? TOGETHER_MS : 0)) {
      settle();
      [steps, since] = [[], entry.at];
    }
    steps.push(...links.turned(entry.node, fault));
  }
  settle();
  return turns;
}

class Links {
  readonly #nodes: readonly number[];
  readonly #cuts: ReadonlyMap<number, Set<number>>;
  readonly #sending = new Map<number, SendingConditions>();
  /** Changed conditions, keyed by the two ends of the link. */
  readonly #changed = new Map<
    string,
    { readonly from: number; readonly to: number; readonly conditions: Conditions }
  >();

  constructor(nodes: readonly number[]) {
    this.#nodes = nodes;
    this.#cuts = new Map(nodes.map((node) => [node, new Set()]));
  }

  /** Records a fault reported by a node. Returns the equivalent steps of a scenario. */
  turned(node: number, fault: LinkFault): Step[] {
    const cuts = this.#cuts.get(node) as Set<number>;
    const others = this.#nodes.filter((other) => other !== node);
    switch (fault.kind) {
      case "cut":
        cuts.add(fault.to);
        return [{ cut: { from: [node], to: [fault.to] } }];
      case "mended":
        cuts.delete(fault.to);
        return [{ mend: { from: [node], to: [fault.to] } }];
      case "all mended":
        for (const each of this.#cuts.values()) each.clear();
        return [{ heal: "all" }];
      case "partition": {
        const [reached, unreached] = [fault.reached, others.filter((other) => !fault.reached.includes(other))];
        cuts.clear();
        for (const other of unreached) cuts.add(other);
        return [
          ...(reached.length === 0 ? [] : [{ mend: { from: [node], to: [...reached] } }]),
          ...(unreached.length === 0 ? [] : [{ cut: { from: [node], to: unreached } }]),
        ];
      }
      case "changed": {
        const { delay, ...model } = fault.model as { delay?: Conditions["delayMs"] } & Conditions;
        const key = `${node} ${fault.to}`;
        const given = { ...model, ...(delay === undefined ? {} : { delayMs: delay }) };
        const conditions = { ...this.#changed.get(key)?.conditions, ...given };
        this.#changed.set(key, { from: node, to: fault.to, conditions });
        return [{ link: { from: [node], to: [fault.to], ...given } }];
      }
      case "sending": {
        this.#sending.set(node, fault);
        const { lossRate = 0, delayMs = USUAL_MS } = conditionsOf(fault);
        return [{ link: { from: [node], to: others, lossRate, delayMs } }];
      }
    }
  }

  get words(): string {
    const [first, ...rest] = this.#nodes.map((node) => conditionTexts(this.#conditions(node)).join("; "));
    const isForAll = rest.every((text) => text === first);
    const sending = isForAll
      ? [first ?? ""]
      : this.#nodes.flatMap((from) =>
          linkTexts({ from, to: this.#nodes.filter((to) => to !== from), ...this.#conditions(from) }),
        );
    const changed = [...this.#changed.values()].flatMap(({ from, to, conditions }) =>
      linkTexts({ from, to, ...conditions }),
    );
    return [...this.#cutTexts(), ...sending, ...changed].filter((text) => text !== "").join("; ");
  }

  #conditions(node: number): Conditions {
    const sending = this.#sending.get(node);
    return sending === undefined ? {} : conditionsOf(sending);
  }

  #cutTexts(): string[] {
    const isCut = (from: number, to: number): boolean => this.#cuts.get(from)?.has(to) === true;
    const pairs = this.#nodes.flatMap((from) =>
      this.#nodes.flatMap((to) => (isCut(from, to) ? [[from, to] as const] : [])),
    );
    const islands = islandsOf(this.#nodes, (a, b) => isCut(a, b) && isCut(b, a));
    const isSplit =
      islands.length > 1 &&
      pairs.every(([from, to]) => !islands.some((island) => island.includes(from) && island.includes(to)));
    return isSplit ? [splitText(islands, this.#nodes)] : pairs.map(([from, to]) => `cut: ${from} → ${to}`);
  }
}

function conditionsOf({ dropRate, delayMs: { min, max } }: SendingConditions): Conditions {
  return {
    ...(dropRate === 0 ? {} : { lossRate: dropRate }),
    ...(max === 0 ? {} : { delayMs: min === max ? max : [min, max] }),
  };
}
