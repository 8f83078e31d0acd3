/**
 * Both ends of the host benchmark: bare echoes, and hosts of a ping-pong protocol. When run as a process, this file is
 * the answering end.
 */
import { createServer, type Socket } from "node:net";
import type { NodeId, Protocol } from "../../src/core/protocol.ts";
import { natural, text, variants } from "../../src/core/shape.ts";
import { faultInjector } from "../../src/runtime/fault-injector.ts";
import { Host } from "../../src/runtime/host.ts";
import { createLog } from "../../src/runtime/log.ts";
import { newCounts } from "../../src/runtime/metrics.ts";
import { realPlatform } from "../../src/runtime/platform/real.ts";
import { GroupIdentity } from "../../src/runtime/transport/identity.ts";
import { tcpTransport } from "../../src/runtime/transport/tcp.ts";
import { serve } from "../workers.ts";

/** With 5 bytes of framing and about 10 bytes for count, type and number, a message is about as long as the echo's. */
const PAYLOAD = "x".repeat(48);
export const MESSAGE_BYTES = PAYLOAD.length + 16;

/**
 * `bulk` returns bytes without parsing them, which is faster than any program that handles messages can be. `message`
 * does the minimum that such a program must do: it splits the stream into messages of a fixed size and writes each of
 * them separately, corked so that they are sent together.
 */
export type EchoStyle = "bulk" | "message";

/** Sends back all messages for which `onMessages` returns true. */
export function echo(socket: Socket, style: EchoStyle, onMessages: (count: number) => boolean): void {
  let partial: Buffer = Buffer.alloc(0);
  let partialBytes = 0;
  socket.setNoDelay(true);
  socket.on("data", (chunk: Buffer) => {
    if (style === "bulk") {
      partialBytes += chunk.length;
      const whole = Math.floor(partialBytes / MESSAGE_BYTES);
      partialBytes -= whole * MESSAGE_BYTES;
      if (whole > 0 && onMessages(whole)) socket.write(Buffer.alloc(whole * MESSAGE_BYTES));
      return;
    }
    const bytes = partial.length === 0 ? chunk : Buffer.concat([partial, chunk]);
    let at = 0;
    socket.cork();
    for (; bytes.length - at >= MESSAGE_BYTES; at += MESSAGE_BYTES)
      if (onMessages(1)) socket.write(bytes.subarray(at, at + MESSAGE_BYTES));
    socket.uncork();
    partial = bytes.subarray(at);
  });
}

type Message = { type: "ping"; count: number; payload: string } | { type: "pong"; count: number; payload: string };
type PingPong = { state: object; message: Message; command: { type: "ping"; count: number } };

/** Creates the ping-pong protocol: node 0 pings, and node 1 answers each ping with a pong that returns the payload. */
function pingPong(onPong: () => boolean): Protocol<PingPong> {
  const fields = { count: natural, payload: text(1_024) };
  return {
    name: "ping-pong",
    init: () => ({}),
    receive: {
      ping: (_state, from, { count, payload }, ctx) => ctx.send(from, { type: "pong", count, payload }),
      pong(_state, from, { count, payload }, ctx) {
        if (onPong()) ctx.send(from, { type: "ping", count: count + 1, payload });
      },
    },
    command: { ping: (_state, { count }, ctx) => ctx.send(1, { type: "ping", count, payload: PAYLOAD }) },
    shapes: { message: { ping: fields, pong: fields }, command: { ping: { count: natural } } },
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: () => ({ role: "peer" }),
  };
}

/**
 * Opens a host.
 * @param onPong returns whether to ping again
 */
export async function openHost(self: NodeId, ports: readonly [number, number], onPong: () => boolean) {
  const protocol = pingPong(onPong);
  const fail = (error: Error): never => {
    throw error;
  };
  const host = new Host<PingPong>({
    platform: realPlatform,
    protocol,
    self,
    peers: [1 - self],
    send: (to, message) => transport.send(to, message),
    trace: { wanted: false, record: () => undefined },
    onFatal: fail,
  });
  const log = createLog((_level, line) => process.stderr.write(`${line}\n`));
  const transport = tcpTransport<Message>({
    platform: realPlatform,
    cluster: "bench",
    self,
    members: Object.fromEntries(ports.map((port, id) => [id, { host: "127.0.0.1", port }])),
    protocol: protocol.name,
    shape: variants<Message>(protocol.shapes.message),
    identity: new GroupIdentity({ self, members: [0, 1], log }),
    injector: faultInjector(realPlatform.random),
    counts: newCounts(),
    log,
    deliver: (from, message, id) => host.receive(from, message, id),
    onLost: () => undefined,
    onFatal: fail,
  });
  await transport.open();
  await transport.tried();
  host.start();
  return { ping: (count: number) => host.command({ type: "ping", count }), close: () => transport.close() };
}

const calls = {
  /** @returns the port */
  echo: (style: EchoStyle): Promise<number> =>
    new Promise((resolve) => {
      const server = createServer((socket) => {
        echo(socket, style, () => true);
        socket.on("error", () => socket.destroy()); // The other end closes the connection after a round.
      });
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
    }),
  host: async (ports: readonly [number, number]): Promise<void> => void (await openHost(1, ports, () => false)),
};
export type Calls = typeof calls;

if (process.send !== undefined) serve(calls);
