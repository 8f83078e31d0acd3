/** The admin pages of a member that serves elections, locks and channels by name. */
import { UsageError } from "../../core/errors.ts";
import type { View } from "../../core/protocol.ts";
import type { AdminServer, AdminTls } from "../../runtime/admin.ts";
import type { NodeStatus } from "../../runtime/admin-pages.ts";
import type { Broadcast } from "../../runtime/broadcast.ts";
import type { FaultInjector } from "../../runtime/fault-injector.ts";
import type { HostPort } from "../../runtime/host-port.ts";
import { type Metric, traceListeners } from "../../runtime/metric-table.ts";
import type { Counts } from "../../runtime/metrics.ts";
import { wallClock } from "../../runtime/platform/wall-clock.ts";
import type { TraceEntry } from "../../trace/entry.ts";
import type { MemberStatus } from "./api.ts";
import type { Sessions } from "./sessions.ts";

interface MemberPages {
  readonly place: AdminPlace;
  readonly counts: Counts;
  readonly metrics: readonly Metric[];
  /** The fault injector. Null if faults cannot be injected. */
  readonly injector: FaultInjector | null;
  readonly sessions: Sessions;
  readonly trace: Broadcast<TraceEntry>;
  status(): MemberStatus;
  missing(): string | null;
  /** Returns the view of the replicated service. Null before the service has started. */
  view(): View | null;
}

/** The address of the pages, and access to them. */
export interface AdminPlace {
  readonly address: HostPort;
  readonly tls: AdminTls | null;
  readonly isReadOnly: boolean;
}

/**
 * Serves the pages. Loads the server only if there are pages, since `import "coterie"` would otherwise take twice as
 * long.
 */
export async function serveMemberPages({
  place,
  counts,
  metrics,
  injector,
  sessions,
  status,
  missing,
  view,
  trace,
}: MemberPages): Promise<AdminServer> {
  const { serveAdmin } = await import("../../runtime/admin.ts");
  const { metricsPage } = await import("../../runtime/metrics-page.ts");
  const page = (): NodeStatus & MemberStatus => pageOf(status());
  return serveAdmin({
    ...place,
    status: page,
    missing,
    metrics: metricsPage([...metrics, traceListeners(() => trace.listeners)]),
    trace,
    snapshot: () => {
      const { id, view: otherwise } = page();
      return { at: wallClock(), node: id, kind: "view", view: view() ?? otherwise, state: {} };
    },
    command() {
      throw new UsageError(
        "bad-command",
        "expected no command: this member serves elections, locks and channels, which have their own pages",
      );
    },
    injector,
    counts,
    sessions,
  });
}

/** Returns the content of `/status`: the fields of every node's status, plus the fields of `status()`. */
function pageOf(status: MemberStatus): NodeStatus & MemberStatus {
  const { id, leader } = status;
  const role = leader === id ? "leader" : status.state;
  return {
    ...status,
    pid: process.pid,
    protocol: "services",
    term: status.shared.term,
    role,
    view: { role },
    commands: {},
  };
}
