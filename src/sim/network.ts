/** The network of a simulation: all links and their cuts. */
import type { Vocabulary } from "../core/protocol.ts";
import type { LinkModel } from "../trace/link-model.ts";
import { type Carrier, carrier, Link, type LinkChance, Outgoing, plainLink, type Separation } from "./links.ts";
import type { SimulationOptions } from "./options.ts";
import type { SimulatedNode } from "./simulated-node.ts";

export interface Network<V extends Vocabulary> {
  link(from: SimulatedNode<V>, to: SimulatedNode<V>): Link;
  /** Whether the link is cut, either directly or by a partition. */
  isCut(link: Link, from: SimulatedNode<V>, to: SimulatedNode<V>): boolean;
  cut(from: SimulatedNode<V>, to: SimulatedNode<V>): void;
  mend(from: SimulatedNode<V>, to: SimulatedNode<V>): void;
  separate(separation: Separation): void;
  heal(): void;
  /**
   * Changes a link's model. `latestArrival`: when the last message in flight from `from` to `to` arrives.
   * @throws UsageError if the model is invalid
   */
  setLink(
    from: SimulatedNode<V>,
    to: SimulatedNode<V>,
    model: Partial<LinkModel>,
    latestArrival: number,
    name?: string,
  ): void;
}

/** Creates the links of a simulation. @throws UsageError if a model is invalid */
export function network<V extends Vocabulary>(options: SimulationOptions<V>, chance: LinkChance): Network<V> {
  const usual: Carrier = carrier({ delay: options.delayMs, ...plainLink, ...options.link }, chance, "link");
  /**
   * If messages never wait for each other, the link shared by all pairs of nodes that have no link of their own.
   * Otherwise null.
   */
  const shared = usual.mayQueue ? null : new Link(usual);
  const cuts = new Set<Link>();
  let separation: Separation | null = null;

  function link(from: SimulatedNode<V>, to: SimulatedNode<V>): Link {
    if (from.outgoing === null) return shared ?? ownLink(from, to);
    return from.outgoing.get(to.place) ?? shared ?? ownLink(from, to);
  }
  function ownLink(from: SimulatedNode<V>, to: SimulatedNode<V>): Link {
    from.outgoing ??= new Outgoing();
    const known = from.outgoing.get(to.place);
    if (known !== null) return known;
    const made = new Link(usual);
    from.outgoing.add(to.place, made);
    return made;
  }
  function setCut(changed: Link, isCut: boolean): void {
    changed.isCut = isCut;
    if (isCut) cuts.add(changed);
    else cuts.delete(changed);
  }

  return {
    link,
    isCut: ({ isCut }, from, to) => isCut || separation?.(from.place, to.place) === true,
    cut: (from, to) => setCut(ownLink(from, to), true),
    mend: (from, to) => setCut(ownLink(from, to), false),
    separate(by) {
      separation = by;
    },
    heal() {
      separation = null;
      for (const each of cuts) setCut(each, false);
    },
    setLink(from, to, model, latestArrival, name = `the link from ${from.self} to ${to.self}`) {
      const changed = ownLink(from, to);
      changed.expect(latestArrival);
      changed.carrier = carrier({ ...changed.carrier.model, ...model }, chance, name);
    },
  };
}
