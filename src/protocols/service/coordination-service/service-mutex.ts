/**
 * A lock of the service with the interface of mutual exclusion: `enter` acquires it, `exit` releases it. A node is
 * inside once it has the grant and its session is confirmed. It leaves when its lease is over.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { mutexProperties, type Section } from "../../mutex/family/workload.ts";
import { requireNoOptions } from "../../options.ts";
import type { GrantOperation, SessionId } from "./operations.ts";

export type ServiceMutex = {
  state: {
    section: Section;
    /** This member's session, and whether its lease is confirmed. */
    session: SessionId | null;
    isCertain: boolean;
    /** The number of its requests in this run. */
    wait: number;
    /** The token of its grant; 0 without one. */
    token: number;
  };
  command: { type: "enter" } | { type: "exit" } | FromMember;
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    | { type: "lost"; token: number }
    /** To the member's session. */
    | { type: "asked"; operation: GrantOperation };
};

type FromMember =
  /** From the member's session. */
  | { type: "began"; session: SessionId }
  | { type: "confirmed"; session: SessionId }
  | { type: "over"; session: SessionId }
  /** From the replica, which applies the opening of a session and later entries before the session emits `began`. */
  | { type: "opened"; session: SessionId; member: NodeId }
  | { type: "granted"; session: SessionId; wait: number; token: number }
  | { type: "restored" };

/** There is only one lock. */
const NAME = "lock";

type State = ServiceMutex["state"];
type Ctx = Context<ServiceMutex>;

function acquire(state: State, ctx: Ctx): void {
  const { wait } = state;
  const rest = { mode: "exclusive", permits: 1, capacity: 1, note: "" } as const;
  ctx.emit({ type: "asked", operation: { type: "acquire", name: NAME, wait, ...rest } });
}

/**
 * Each request has its own wait id, so that a leftover of the last one is not mistaken for it. A restarted node has a
 * new session.
 */
function want(state: State, ctx: Ctx): void {
  state.wait += 1;
  acquire(state, ctx);
}

/** Grants of another session are void. */
function use(state: State, session: SessionId): void {
  if (session !== state.session) Object.assign(state, { session, isCertain: false, token: 0 });
}

function enterIfGranted(state: State, ctx: Ctx): void {
  if (state.section !== "wanted" || state.token === 0 || !state.isCertain) return;
  state.section = "held";
  ctx.emit({ type: "entered", token: state.token });
}

export function serviceMutex(given?: object): Protocol<ServiceMutex> {
  requireNoOptions("coordination-service", given);
  return {
    name: "coordination-service",
    init: () => ({ section: "released", session: null, isCertain: false, wait: 0, token: 0 }),
    command: {
      enter(state, _command, ctx) {
        if (state.section !== "released") return; // It already waits or is inside.
        state.section = "wanted";
        want(state, ctx);
      },
      exit(state, _command, ctx) {
        const { section, token, wait } = state;
        if (section === "released") return; // It neither waits nor is inside.
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
        if (session !== state.session) return; // From an earlier session.
        state.isCertain = true;
        enterIfGranted(state, ctx);
      },
      over(state, { session }, ctx) {
        if (session !== state.session) return; // From an earlier session.
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
      "for liveness: a majority alive and connected to a common leader; eventually reliable links and bounded delay",
    ],
    // The system never becomes quiescent, since the log keeps sending heartbeats.
    properties: mutexProperties<ServiceMutex>(({ section }) => section).filter(({ when }) => when !== "quiescent"),
    costs: [{ when: "one entry of the leader of the log, without heartbeats", messages: (nodes) => 6 * (nodes - 1) }],
    view: ({ section }) => ({ role: section }),
  };
}
