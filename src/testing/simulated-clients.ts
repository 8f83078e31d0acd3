/**
 * Simulated clients, each on its own machine. Their messages travel over links, and may therefore be late, lost or cut
 * off. They run the code of `connect()`, except for WebSocket and HTTP.
 */
import { type Client, connectOn } from "../client/client.ts";
import { dialFailure } from "../client/dial-failures.ts";
import type { Dial } from "../client/link.ts";
import type { Member } from "../cluster/services/api.ts";
import { UsageError, unexpected } from "../core/errors.ts";
import type { NodeId } from "../core/protocol.ts";
import type { Random } from "../core/random.ts";
import { parseHostPort } from "../runtime/host-port.ts";
import type { Network, Stream } from "../runtime/platform/platform.ts";
import type { Release } from "./release.ts";
import { hostOf, type Run } from "./simulated-machine.ts";
import type { Machine, SimulatedNetwork } from "./simulated-network.ts";
import { type ClockRate, SimulatedProcess } from "./simulated-process.ts";
import type { SimulatedStream } from "./simulated-stream.ts";
import type { VirtualTime } from "./virtual-time.ts";
import type { ProcessTools } from "./world-options.ts";

/** Options for `World.connect()`. */
export interface ClientOptions {
  /**
   * The id of the client's machine, used with `cut`, `link`, `partition`, `pause`, `kill` and `crash`: 1,000 or above.
   * Default: the next free id.
   */
  readonly machine?: NodeId | undefined;
  /**
   * The program that the client's process runs once it has connected. It uses the world's timers, and ends when the
   * process ends.
   */
  readonly program?: ((client: Client, process: ProcessTools) => unknown) | undefined;
  /** The members that the client tries first. Default: all. */
  readonly members?: readonly NodeId[] | undefined;
  /**
   * Whether the client learns the addresses of other members from the cluster and also connects to these. Default:
   * true.
   */
  readonly discover?: boolean | undefined;
  /** The maximum time to wait for the first connection, in milliseconds. Default: 10,000. */
  readonly timeoutMs?: number | undefined;
  /** Closes the client when aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** The lowest id of a client's machine. Lower ids belong to members. */
export const FIRST_CLIENT_MACHINE = 1_000;
const PORT = 7_300;
const HANDSHAKE_MS = 3_000;
const MAX_STREAMS = 2_000;
/** A closed connection is destroyed after this time, even if the other end does not answer. */
const LINGER_MS = 200;

/** Returns the URL at which a member serves clients. */
export const endpointOf = (member: NodeId): string => `http://${hostOf(member)}:${PORT}`;

/** A machine that runs client processes, one at a time. */
export class ClientMachine implements Machine {
  readonly #around: { readonly time: VirtualTime; readonly network: () => SimulatedNetwork };
  readonly #chance: Random;
  readonly #rate: ClockRate;
  readonly host: string;
  isUp = true;
  process: SimulatedProcess | null = null;
  #runs = 0;

  constructor(
    readonly id: NodeId,
    around: { readonly time: VirtualTime; readonly network: () => SimulatedNetwork },
    chance: Random,
    rate: ClockRate,
  ) {
    this.#around = around;
    this.#chance = chance;
    this.#rate = rate;
    this.host = hostOf(id);
  }

  start(): SimulatedProcess {
    this.isUp = true;
    this.#runs += 1;
    this.process = new SimulatedProcess(this.#around.time, this.#rate, this.#chance.stream(`run ${this.#runs}`));
    return this.process;
  }

  end(losesPower: boolean): void {
    this.process?.die();
    if (this.process !== null) this.#around.network().processDied(this.process, !losesPower);
    this.process = null;
    if (losesPower) this.isUp = false;
  }
}

/** All clients in a world. Members start serving clients when the first one connects. */
export class SimulatedClients {
  readonly #make: (id: NodeId) => ClientMachine;
  /** The ids of the clients' machines. */
  readonly ids: NodeId[] = [];
  readonly #machines = new Map<NodeId, ClientMachine>();
  readonly #serving = new WeakSet<Run>();

  constructor(make: (id: NodeId) => ClientMachine) {
    this.#make = make;
  }

  find(id: NodeId): ClientMachine | undefined {
    return this.#machines.get(id);
  }

  /** @throws UsageError if the id cannot belong to a client's machine */
  machineFor(id: NodeId = this.#next()): { machine: ClientMachine; isNew: boolean } {
    if (!Number.isSafeInteger(id) || id < FIRST_CLIENT_MACHINE)
      throw new UsageError(
        "bad-option",
        unexpected("machine", `a whole number of at least ${FIRST_CLIENT_MACHINE}`, id),
      );
    const known = this.#machines.get(id);
    const machine = known ?? this.#make(id);
    if (known === undefined) this.ids.push(id);
    this.#machines.set(id, machine);
    return { machine, isNew: known === undefined };
  }

  /** Makes a member serve clients, if there are any. */
  serve(run: Run): void {
    const { member, network, release } = run;
    if (this.ids.length === 0 || member === null || member.signal.aborted || this.#serving.has(run)) return;
    this.#serving.add(run);
    serveClients(release, member, network);
  }

  #next(): NodeId {
    let id = FIRST_CLIENT_MACHINE;
    while (this.#machines.has(id)) id += 1;
    return id;
  }
}

/** Serves clients on a member's machine, for as long as its process is a member. */
function serveClients(release: Release, member: Member, network: Network): void {
  const door = release.takeClients(member, endpointOf(member.id));
  const listener = network.listener({
    tls: null,
    handshakeTimeoutMs: HANDSHAKE_MS,
    maxStreams: MAX_STREAMS,
    onMade: () => {},
    onDropped: () => {},
    onTlsRefused: () => {},
    onError: () => {},
    onReady(stream) {
      const guest = door.accept(
        {
          send: (text) => sendText(stream, text),
          get queuedBytes() {
            return (stream as SimulatedStream).unreadBytes;
          },
          probe: () => {}, // As long as the client is running, it sends pings.
          close: () => void stream.end(Buffer.alloc(0)),
        },
        () => "write",
      );
      stream.on(
        "data",
        textReader((text) => guest.hear(text)),
      );
      stream.on("error", () => {}); // A "close" event follows.
      stream.on("close", () => guest.left());
    },
  });
  void listener.open({ host: hostOf(member.id), port: PORT });
  member.signal.addEventListener("abort", () => void listener.close());
}

/** Starts a client's process on this machine and connects it. */
export function connectFrom(
  machine: ClientMachine,
  network: SimulatedNetwork,
  members: readonly NodeId[],
  { machine: _machine, program: _program, members: begins = members, ...options }: ClientOptions,
): Promise<Client> {
  if (machine.process !== null)
    throw new UsageError("already-running", unexpected("machine", "a machine without a running client", machine.id));
  const process = machine.start();
  const { clock, timers, random } = process;
  const dial = dialOn(network.of(machine, process), process);
  return connectOn({ clock, timers, random }, dial, { ...options, endpoints: begins.map(endpointOf) });
}

const dialOn =
  (network: Network, process: SimulatedProcess): Dial =>
  (endpoint, ear) => {
    const place = parseHostPort(endpoint.replace(/^http:\/\//, "")) ?? { host: endpoint, port: 0 };
    let isClosed = false;
    const stream: Stream = network.dial(place, null, () => {
      if (!isClosed) ear.opened();
    });
    stream.on(
      "data",
      textReader((text) => {
        if (!isClosed) ear.heard(text);
      }),
    );
    let reason: string | undefined;
    stream.on("error", (error) => {
      reason = dialFailure(error, endpoint); // A "close" event follows.
    });
    stream.on("close", () => {
      if (!isClosed) ear.closed(reason);
      isClosed = true;
    });
    return {
      send: (text) => sendText(stream, text),
      close() {
        isClosed = true;
        stream.end(Buffer.alloc(0));
        process.timer(LINGER_MS, () => stream.destroy());
      },
    };
  };

// Text messages over a simulated stream. Each arrives whole and in order, as over a WebSocket on TCP.

/** The size of the length that precedes each message. */
const LENGTH_BYTES = 4;

const sendText = (stream: Pick<Stream, "write" | "writable">, text: string): void => {
  if (!stream.writable) return;
  const bytes = Buffer.byteLength(text);
  const message = Buffer.allocUnsafe(LENGTH_BYTES + bytes);
  message.writeUInt32BE(bytes);
  message.write(text, LENGTH_BYTES);
  stream.write(message);
};

/** Assembles chunks into text messages. */
function textReader(heard: (text: string) => void): (bytes: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (bytes) => {
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
    let at = 0;
    while (rest.length - at >= LENGTH_BYTES) {
      const end = at + LENGTH_BYTES + rest.readUInt32BE(at);
      if (end > rest.length) break;
      const text = rest.toString("utf8", at + LENGTH_BYTES, end);
      at = end;
      heard(text);
    }
    rest = rest.subarray(at);
  };
}
