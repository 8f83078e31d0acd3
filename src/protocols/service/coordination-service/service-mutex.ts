/**
 * A lock from the service with the interface of a mutual exclusion algorithm: `enter` acquires the lock, and `exit`
 * releases it. A node is in the critical section once it has the grant and its session is confirmed. It leaves when its
 * lease ends.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { mutexProperties, type Section } from "../../mutex/family/workload.ts";
import { requireNoOptions } from "../../options.ts";
import type { GrantOperation, SessionId } from "./operations.ts";

/** Vocabulary of a lock from the service. */
export type ServiceMutex = {
  state: {
    section: Section;
    /** This member's session (`session`), and whether its lease is confirmed (`isCertain`). */
    session: SessionId | null;
    isCertain: boolean;
    /** The number of requests since the last start. */
    wait: number;
    /** The token of the node's grant, or 0 if it has none. */
    token: number;
  };
  command: { type: "enter" } | { type: "exit" } | FromMember;
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    | { type: "lost"; token: number }
    /** Events for the member's session. */
    | { type: "asked"; operation: GrantOperation };
};

type FromMember =
  /** Commands from the member's session. */
  | { type: "began"; session: SessionId }
  | { type: "confirmed"; session: SessionId }
  | { type: "over"; session: SessionId }
  /**
   * Commands from the replica. It applies the entry that opens a session, and later entries, before the session emits
   * `began`.
   */
  | { type: "opened"; session: SessionId; member: NodeId }
  | { type: "granted"; session: SessionId; wait: number; token: number }
  | { type: "restored" };

/** The name of the only lock. */
const NAME = "lock";

type State = ServiceMutex["state"];
type Ctx = Context<ServiceMutex>;

function acquire(state: State, ctx: Ctx): void {
  const { wait } = state;
  const rest = { mode: "exclusive", permits: 1, capacity: 1, note: "" } as const;
  ctx.emit({ type: "asked", operation: { type: "acquire", name: NAME, wait, ...rest } });
}

/**
 * Requests the lock. Each request has its own wait id, so that a late answer to an earlier request is not mistaken for
 * the answer to this one. A restarted node has a new session.
 */
function want(state: State, ctx: Ctx): void {
  state.wait += 1;
  acquire(state, ctx);
}

/** Uses a session. Grants from any other session are void. */
function use(state: State, session: SessionId): void {
  if (session !== state.session) Object.assign(state, { session, isCertain: false, token: 0 });
}

function enterIfGranted(state: State, ctx: Ctx): void {
  if (state.section !== "wanted" || state.token === 0 || !state.isCertain) return;
  state.section = "held";
  ctx.emit({ type: "entered", token: state.token });
}

/** Creates a lock from the service. @throws UsageError if any option is given, because there are none */
export function serviceMutex(given?: object): Protocol<ServiceMutex> {
  requireNoOptions("coordination-service", given);
  return {
    name: "coordination-service",
    init: () => ({ section: "released", session: null, isCertain: false, wait: 0, token: 0 }),
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // The node is already waiting or inside.
        state.section = "wanted";
        want(state, ctx);
      },
      exit(state, _command, ctx) {
        const { section, token, wait } = state;
        if (section === "released") return; // The node is neither waiting nor inside.
        state.section = "released";
        state.token = 0;
        if (section === "held") {
          ctx.emit({ type: "exited" });
          ctx.emit({ type: "asked", operation: { type: "release", name: NAME, token } });
        } else ctx.emit({ type: "asked", operation: { type: "withdraw", name: NAME, wait } });
      },
      opened(state, { session, member }, ctx) {
        if (member === ctx.self) use(state, session);
      },
      began: (state, { session }) => use(state, session),
      confirmed(state, { session }, ctx) {
        if (session !== state.session) return; // The event belongs to an earlier session.
        state.isCertain = true;
        enterIfGranted(state, ctx);
      },
      over(state, { session }, ctx) {
        if (session !== state.session) return; // The event belongs to an earlier session.
        const { section, token } = state;
        Object.assign(state, { session: null, isCertain: false, token: 0 });
        if (section === "held") {
          state.section = "released";
          ctx.emit({ type: "lost", token });
        } else if (section === "wanted") want(state, ctx);
      },
      granted(state, { session, wait, token }, ctx) {
        if (session !== state.session || wait !== state.wait || state.section !== "wanted") return; // For another request.
        state.token = token;
        enterIfGranted(state, ctx);
      },
      restored(state, _command, ctx) {
        if (state.section === "wanted") acquire(state, ctx); // The snapshot may have skipped the grant.
      },
    },
    shapes: {
      command: {
        enter: {},
        exit: {},
        opened: { session: natural, member: natural },
        began: { session: natural },
        confirmed: { session: natural },
        over: { session: natural },
        granted: { session: natural, wait: natural, token: natural },
        restored: {},
      },
    },
    source: "Burrows, OSDI 2006; Hunt et al., USENIX ATC 2010; Ongaro & Ousterhout, USENIX ATC 2014",
    assumes: [
      "crash-recovery nodes with a journal",
      "for leases: clock rates within the drift, and no paused nodes",
      "for liveness: a live majority connected to a common leader; eventually reliable links and bounded delay",
    ],
    // The system never becomes quiescent, because the log sends heartbeats forever.
    properties: mutexProperties<ServiceMutex>(({ section }) => section).filter(({ when }) => when !== "quiescent"),
    costs: [{ when: "one entry of the leader of the log, without heartbeats", messages: (nodes) => 6 * (nodes - 1) }],
    view: ({ section }) => ({ role: section }),
  };
}
