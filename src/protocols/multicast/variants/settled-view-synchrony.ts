/**
 * View synchrony as the checker explores it: all nodes have been in view 1 for a long time, and every crash is
 * reported. Short runs can therefore reach view changes without waiting for a failure detector's timers.
 */
import type { Assembly } from "../../../core/assemble.ts";
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { delivery, fifoOrder, virtualSynchrony } from "../family/properties.ts";
import { type MulticastWorkload, type MulticastWorkloadOptions, withMulticastWorkload } from "../family/workload.ts";
import { stateIn } from "../ip-multicast/sessions.ts";
import { evenly } from "../ip-multicast/vocabulary.ts";
import { type ViewSynchrony, type ViewSynchronyOptions, viewSynchrony } from "../view-synchrony.ts";

export type SettledViewSynchrony = Assembly<{ workload: MulticastWorkload; multicast: ViewSynchrony }>;

/** Options, by part. */
export interface SettledOptions {
  workload?: Partial<MulticastWorkloadOptions>;
  multicast?: ViewSynchronyOptions;
}

/** Creates view synchrony for the checker. @param made creates the protocol. Tests pass a faulty one. */
export function settledViewSynchrony(
  options: SettledOptions = {},
  made: (options: ViewSynchronyOptions) => Protocol<ViewSynchrony> = viewSynchrony,
): Protocol<SettledViewSynchrony> {
  const multicast = ({ multicast: ip, views }: ViewSynchronyOptions = {}) =>
    made({ multicast: { ...evenly, ...ip }, views: { remindMs: 0, ...views } });
  const whole = withMulticastWorkload<{ multicast: ViewSynchrony }, SettledOptions>(
    { parts: { multicast }, wires: {}, algorithm: "multicast" },
    [fifoOrder, ...delivery, virtualSynchrony],
  )(options);
  type State = SettledViewSynchrony["state"];

  /** Treats a node that asks to be admitted as having crashed and recovered. */
  function restoreIfBack(state: State, from: NodeId, type: string, ctx: Context<SettledViewSynchrony>): void {
    if (type === "wish" && state.multicast.views.suspected.includes(from))
      whole.command.multicast(state, { type: "multicast", body: { type: "restore", node: from } }, ctx);
  }

  return {
    ...whole,
    init(self, peers) {
      const { workload, multicast: outside } = whole.init(self, peers);
      const nodes = [self, ...peers].sort((a, b) => a - b);
      const members = nodes.map((node) => ({ node, incarnation: 1 }));
      return {
        workload: { ...workload, view: 1, since: 1 },
        multicast: {
          multicast: stateIn(self, 1, nodes, []),
          views: { ...outside.views, incarnation: 1, view: { number: 1, members, cut: [] } },
        },
      };
    },
    /** A restarted node has lost all state that was not journaled, including its view. */
    start(state, ctx) {
      Object.assign(state.workload, { view: 0, since: 0 });
      state.multicast.multicast = stateIn(ctx.self, 0, [], []);
      whole.start?.(state, ctx);
    },
    receive: {
      multicast(state, from, message, ctx) {
        restoreIfBack(state, from, message.body.body.type, ctx);
        whole.receive.multicast(state, from, message, ctx);
      },
    },
  };
}
