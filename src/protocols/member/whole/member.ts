/**
 * A whole member of `join()`: names, and one lock under a name, put together as `src/cluster` does; with a program at every node that
 * enters now and then, and a failure detector that both share. The lock is what the registry has for `join()` of a mutual exclusion,
 * with the wires that are declared there. Where its wires lead to an election, the member has one, too, of who serves.
 */
import type { Assembly } from "../../../core/assemble.ts";
import type { Protocol, World } from "../../../core/protocol.ts";
import type { Embedded } from "../../entry.ts";
import { watching } from "../../membership/family/watching.ts";
import { type Names, type NamesOptions, names } from "../../membership/names/names.ts";
import { NAME, type Program, type ProgramOptions, program, programWires } from "../../membership/names/program.ts";
import { nameWires } from "../../membership/names/wires.ts";
import { idleIsPutAway, inUseIsKept } from "../../membership/names/workload.ts";
import { tokensGrow } from "../../mutex/family/workload.ts";
import { type AnyMaker, composed, type WireTable } from "../../system.ts";
import { served } from "./served.ts";
import { type ToldDetector, toldDetector } from "./told-detector.ts";
import { type ToldElectionOptions, toldElection } from "./told-election.ts";
import { heedsEpochs, type UnderName, underName } from "./under-name.ts";

type MemberParts = { names: Names; mutex: UnderName; detector: ToldDetector; workload: Program };

export type Member = Assembly<MemberParts>;

export interface MemberOptions {
  names?: Partial<NamesOptions>;
  workload?: Partial<ProgramOptions>;
  /** Of a lock that heeds it. */
  election?: Partial<ToldElectionOptions>;
}

/** A lock that begins is to know who is suspected; a node that has started again is alive. */
const detectorWires = (isNeverPutAway: boolean): WireTable => ({
  names: {
    ran(_event, give) {
      give("detector", { type: "tell" });
      if (isNeverPutAway) give("names", { type: "use", name: NAME });
    },
    met: ({ node }, give) => give("detector", { type: "hear", node }),
  },
});

/** Where several tables have a wire for the same event of the same part, what each of them gives, in their order. */
function allOf(...tables: readonly WireTable[]): WireTable {
  const whole: Record<string, Record<string, Wire>> = {};
  for (const [part, wires] of tables.flatMap((table) => Object.entries(table)))
    for (const [event, wire] of Object.entries(wires)) {
      const earlier = whole[part]?.[event];
      const together: Wire = (said, give) => {
        earlier?.(said, give);
        wire(said, give);
      };
      whole[part] = { ...whole[part], [event]: together };
    }
  return whole;
}
type Wire = WireTable[string][string];

/**
 * A lock that the leader of the member's epoch serves: one that begins is to know who that is, and where it is this member, what this
 * member knows of the locks that it has put away. It is in use while it has something to do.
 */
const servedWires: WireTable = {
  names: {
    ran(_event, give) {
      give("election", { type: "tell" });
      give("served", { type: "open" });
    },
    met: ({ node }, give) => give("election", { type: "hear", node }),
  },
  // What a lock is told of elections, so is this, which stands for those that are put away.
  election: {
    elected: (event, give) => give("served", event),
    deposed: (event, give) => give("served", event),
  },
  mutex: {
    stands: (event, give) => give("served", event),
    retired: ({ token }, give) => give("served", { type: "putAway", token }),
  },
  served: {
    resumes: ({ token, servedMs }, give) => give("mutex", { type: "resume", token, servedMs }),
    uses: (_event, give) => give("names", { type: "use", name: NAME }),
    rests: (_event, give) => give("names", { type: "rest", name: NAME }),
  },
};

/** The program's use is not all. */
const useIsServed = ({ workload, ...others }: WireTable): WireTable => ({
  ...others,
  workload: {
    ...workload,
    uses: (_event, give) => give("served", { type: "use" }),
    rests: (_event, give) => give("served", { type: "rest" }),
  },
});

/** What a lock that is never put away is told of: a node that runs it has it in use, whatever its program does. */
function untilTheEnd({ workload: { rests: _rests, ...workload } = {}, ...others }: WireTable): WireTable {
  return { ...others, workload };
}

export interface MemberSystem {
  /** Of the registry. The parts that its wires lead to are the detector, the election of who serves and itself. */
  readonly lock: Embedded;
  /** Of the lock. */
  readonly settings?: object;
  /** Of names, which nobody else sets. */
  readonly names?: Partial<NamesOptions>;
  /** Whether the timers of the lock run: otherwise nobody under the name gives up or asks again. */
  readonly isTimed?: boolean;
}

export function member({ lock, settings = {}, names: fixed = {}, isTimed = true }: MemberSystem): AnyMaker {
  const isNeverPutAway = lock.forgotten === "never";
  const isServed = heedsEpochs(lock, settings);
  const ofProgram = programWires("mutex", lock.forgotten);
  const wires = allOf(
    isServed ? servedWires : {}, // First: a lock knows all this before its program enters.
    isServed ? useIsServed(ofProgram) : isNeverPutAway ? untilTheEnd(ofProgram) : ofProgram,
    nameWires({ instance: "mutex", early: "mutex", program: "workload" }),
    detectorWires(isNeverPutAway),
    watching("names"),
    lock.wires(settings),
  );
  const parts = {
    names: (options?: object) => names({ ...options, ...fixed }),
    mutex: () => underName(lock, settings, isTimed),
    detector: toldDetector,
    ...(isServed ? { election: toldElection, served: () => served(isTimed) } : {}),
    workload: program,
  };
  const make = composed<MemberParts, MemberOptions>({ parts, wires, algorithm: "names" });
  const timers = Object.keys(parts.mutex().timeout).map((timer) => `mutex.${timer}`);
  const own = [
    messagesAreMeant,
    ...(isNeverPutAway ? [] : [inUseIsKept]),
    // Without timers a server that nobody asks waits for ever for what earlier ones have granted.
    ...(isNeverPutAway || (isServed && !isTimed) ? [] : [idleIsPutAway]),
    // Who waits for a server asks again and again, and is never at rest.
    ...(isTimed && !isServed ? [askedIsGranted(timers)] : []),
  ];
  // A lease that runs out whenever it likes lets another in: then only tokens tell who came later.
  const needsTime = isTimed && lock.lease !== null;
  return (options?: MemberOptions): Protocol<Member> => {
    const { properties, ...assembly } = make(options);
    const kept = properties.filter(({ name }) => !needsTime || name !== "mutex: ME1 safety");
    return { ...assembly, properties: [...kept, ...(needsTime ? [] : [oneGrant, tokensGrow]), ...own] } as never;
  };
}

type Whole = World<{ workload: Program["state"]; names: Names["state"] }>;

const oneGrant = {
  name: "no two grants overlap",
  claim: "at most one program is inside, however its node runs the name",
  when: "always",
  holds: ({ alive, state }: Whole): boolean =>
    alive.filter((node) => state(node).workload.doing === "inside").length <= 1,
} as const;

interface Taken {
  readonly wrongly: boolean;
}

const messagesAreMeant = {
  name: "messages are meant",
  claim: "what is said under one setting is given to no lock that is run under another",
  when: "always",
  history: {
    empty: { wrongly: false } as Taken,
    after(before: Taken, { body }: { body: { type: string; setting?: string; runs?: string | null } }): Taken {
      return body.type === "took" && body.setting !== body.runs ? { wrongly: true } : before;
    },
  },
  holds: ({ nodes, history }: Whole): boolean => nodes.every((node) => !history<Taken>(node).wrongly),
} as const;

/** @param timers of the lock, which is at work while one runs. */
const askedIsGranted = (timers: readonly string[]) =>
  ({
    name: "asked is granted",
    claim: "at rest, if all run the name and alike, nobody waits to enter",
    when: "quiescent",
    pendingTimers: ["workload.begin", "workload.end", ...timers],
    holds: ({ alive, nodes, state }: Whole): boolean =>
      alive.length < nodes.length ||
      new Set(alive.map((node) => state(node).workload.runs)).size > 1 ||
      alive.every((node) => state(node).workload.doing !== "waiting"),
  }) as const;
