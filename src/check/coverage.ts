/**
 * What a search has tried of a protocol: which handlers ran, and in how many ways each of them ended. A way to end is
 * what can be seen from outside: what kinds of effects there were, on which nodes, and whether the state changed; two branches
 * that do the same count as one. A protocol is watched by running it in a coat, so any driver will do.
 */
import { canonical } from "../core/plain.ts";
import type { Context, Protocol, Tagged, Vocabulary } from "../core/protocol.ts";
import type { ShapeNode } from "../core/shape.ts";
import { partName, typeName as phrase } from "../driver/handler-failure.ts";

export interface Coverage<V extends Vocabulary> {
  /** Runs like the protocol that was given, and notes what happens. */
  readonly protocol: Protocol<V>;
  report(): CoverageReport;
}

export interface CoverageReport {
  /** In the order of the protocol's tables. */
  readonly handlers: readonly HandlerCoverage[];
  /** Handlers that never ran. Commands of an assembly's parts are left out: wires give them within other handlers. */
  readonly never: readonly string[];
}

export interface HandlerCoverage {
  /** Such as `start`, `receive election`, `timeout answer`, `command call`, `replay promised`. */
  readonly handler: string;
  /** How often it ran. Explorations remember what a handler did, so this is the number of different situations. */
  readonly runs: number;
  /** The ways in which it ended, the most frequent first. */
  readonly endings: readonly Ending[];
}

export interface Ending {
  /** Such as `sends answer, arms coordinator, changes its state`. */
  readonly what: string;
  readonly runs: number;
}

/** How often each handler ended in which way. */
type Seen = Map<string, Map<string, number>>;
type Table = (typeof tables)[number];
const tables = ["receive", "timeout", "command", "replay"] as const;
type Handler = (state: object, ...rest: unknown[]) => void;
type Handlers = Readonly<Record<string, Handler>>;
/** Protocols in coats, and what is inside. */
const coats = new WeakMap<object, object>();

/** The protocol that `coverage` was given, for runs that are not to be counted. */
export const withoutCoverage = <V extends Vocabulary>(protocol: Protocol<V>): Protocol<V> =>
  (coats.get(protocol) as Protocol<V> | undefined) ?? protocol;

type Bare = { readonly [T in Table]?: Handlers } & {
  readonly start?: Handler;
  readonly shapes: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, ShapeNode>>>>>>;
};

export function coverage<V extends Vocabulary>(protocol: Protocol<V>): Coverage<V> {
  const bare = protocol as unknown as Bare;
  const seen: Seen = new Map();

  /** The same handler, noting under its name what it does. The context comes last, if there is one. */
  const watched =
    (table: string, name: string, handle: Handler): Handler =>
    (state, ...rest) => {
      const effects: string[] = [];
      const before = canonical(state);
      const given = rest.at(-1);
      const hasContext = table !== "replay" && given !== undefined;
      handle(state, ...(hasContext ? [...rest.slice(0, -1), watching(given as Context<Vocabulary>, effects)] : rest));
      if (canonical(state) !== before) effects.push("changes its state");
      const content = table === "receive" ? rest[1] : table === "command" || table === "replay" ? rest[0] : null;
      const handler = [table, name === "" ? [] : partName(name, content as Tagged | null)].flat().join(" ");
      const what = [...new Set(effects)].join(", ") || "does nothing";
      noteIn(seen, handler, { what, runs: 1 });
    };
  const coat = (table: Table): object =>
    bare[table] === undefined
      ? {}
      : {
          [table]: Object.fromEntries(
            Object.entries(bare[table]).map(([name, handle]) => [name, watched(table, name, handle)]),
          ),
        };

  const worn = {
    ...protocol,
    ...Object.assign({}, ...tables.map(coat)),
    ...(bare.start === undefined ? {} : { start: watched("start", "", bare.start) }),
  } as Protocol<V>;
  coats.set(worn, protocol);
  return { protocol: worn, report: () => reportOf(bare, seen) };
}

/** What several searches of a protocol have tried together. A situation counts for each of them that met it. */
export function coverageTogether<V extends Vocabulary>(
  protocol: Protocol<V>,
  reports: readonly CoverageReport[],
): CoverageReport {
  const seen: Seen = new Map();
  for (const { handler, endings } of reports.flatMap(({ handlers }) => handlers))
    for (const ending of endings) noteIn(seen, handler, ending);
  return reportOf(protocol as unknown as Bare, seen);
}

function noteIn(seen: Seen, handler: string, { what, runs }: Ending): void {
  const endings = seen.get(handler) ?? new Map<string, number>();
  seen.set(handler, endings.set(what, (endings.get(what) ?? 0) + runs));
}

function reportOf(bare: Bare, seen: Seen): CoverageReport {
  const all = handlersOf(bare);
  const handlers = [...new Set([...all, ...seen.keys()])].flatMap((handler) => {
    const endings = [...(seen.get(handler) ?? [])].map(([what, runs]) => ({ what, runs }));
    const runs = endings.reduce((sum, ending) => sum + ending.runs, 0);
    return runs === 0 ? [] : [{ handler, runs, endings: endings.sort((a, b) => b.runs - a.runs) }];
  });
  return { handlers, never: all.filter((handler) => !seen.has(handler)) };
}

/** A context that passes everything on and keeps the kinds of effects. */
function watching(ctx: Context<Vocabulary>, effects: string[]): Context<Vocabulary> {
  const note = (what: string): void => void effects.push(what);
  return {
    self: ctx.self,
    peers: ctx.peers,
    send(to, message) {
      note(`sends ${phrase(message)}`);
      ctx.send(to, message);
    },
    broadcast(message) {
      note(`sends ${phrase(message)} to all`);
      ctx.broadcast(message);
    },
    setTimer(timer, duration) {
      note(`arms ${timer}`);
      ctx.setTimer(timer, duration);
    },
    cancelTimer(timer) {
      note(`disarms ${timer}`);
      ctx.cancelTimer(timer);
    },
    persist(record) {
      note(`journals ${phrase(record)}`);
      ctx.persist(record);
    },
    compact(records) {
      note(`compacts to ${records.map(phrase).join(", ")}`);
      ctx.compact(records);
    },
    emit(event, until) {
      note(`says ${phrase(event)}`);
      ctx.emit(event, until);
    },
    reply(request, reply) {
      note(`replies ${phrase(reply)}`);
      ctx.reply(request, reply);
    },
    choose: (label, options) => ctx.choose(label, options),
    signatures: ctx.signatures,
  };
}

export const handlerNames = <V extends Vocabulary>(protocol: Protocol<V>): string[] =>
  handlersOf(protocol as unknown as Bare);

/** Every handler by its name, from the tables, and for parts of assemblies from the shapes. */
function handlersOf(bare: Bare): string[] {
  const shapesOf: Readonly<Record<Table, string | null>> = {
    receive: "message",
    timeout: null,
    command: "command",
    replay: "record",
  };
  const hasParts = tables.some((table) =>
    Object.values(bare.shapes[shapesOf[table] ?? ""] ?? {}).some((fields) => insideOf(fields) !== null),
  );
  const inTables = tables.flatMap((table) =>
    Object.keys(bare[table] ?? {}).flatMap((name) => {
      const parts = insideOf(bare.shapes[shapesOf[table] ?? ""]?.[name]);
      if (parts === null) return [`${table} ${name}`];
      return table === "command" ? [] : parts.map((part) => `${table} ${name}.${part}`);
    }),
  );
  // An assembly always has a start, whether or not any of its parts has.
  return bare.start === undefined || hasParts ? inTables : ["start", ...inTables];
}

/** The types that a part's messages, commands or records have; null where there is no part. */
function insideOf(fields: Readonly<Record<string, ShapeNode>> | undefined): string[] | null {
  return fields?.body?.kind === "variants" ? Object.keys(fields.body.variants) : null;
}
