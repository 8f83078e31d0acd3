/** The smallest protocol for round trips: node 0 pings, node 1 answers each ping with a pong that carries it back. */
import type { NodeId, Protocol } from "../src/core/protocol.ts";
import { natural, text, variants } from "../src/core/shape.ts";
import { faultInjector } from "../src/runtime/fault-injector.ts";
import { Host } from "../src/runtime/host.ts";
import { createLog } from "../src/runtime/log.ts";
import { newCounts } from "../src/runtime/metrics.ts";
import { realPlatform } from "../src/runtime/platform/real.ts";
import { GroupIdentity } from "../src/runtime/transport/identity.ts";
import { tcpTransport } from "../src/runtime/transport/tcp.ts";

type Message = { type: "ping"; count: number; payload: string } | { type: "pong"; count: number; payload: string };
export type PingPong = {
  state: { pings: number };
  message: Message;
  command: { type: "ping"; count: number };
};

/** With 5 bytes of frame and about 10 of count, type and number, one message takes about as many bytes as the echo's. */
const PAYLOAD = "x".repeat(48);
export const MESSAGE_BYTES = PAYLOAD.length + 16;

/** `onPong` returns whether to go on. */
function pingPong(onPong: () => boolean): Protocol<PingPong> {
  const fields = { count: natural, payload: text(1_024) };
  return {
    name: "ping-pong",
    init: () => ({ pings: 0 }),
    receive: {
      ping(state, from, { count, payload }, ctx) {
        state.pings += 1;
        ctx.send(from, { type: "pong", count, payload });
      },
      pong(_state, from, { count, payload }, ctx) {
        if (onPong()) ctx.send(from, { type: "ping", count: count + 1, payload });
      },
    },
    command: {
      ping: (_state, { count }, ctx) => ctx.send(1, { type: "ping", count, payload: PAYLOAD }),
    },
    shapes: {
      message: { ping: fields, pong: fields },
      command: { ping: { count: natural } },
    },
    source: "none",
    assumes: [],
    properties: [],
    costs: [],
    view: (state) => ({ role: `${state.pings} pings` }),
  };
}

export interface PingPongHost {
  open(): Promise<void>;
  ping(count: number): void;
  close(): Promise<void>;
}

export function pingPongHost(options: {
  self: NodeId;
  ports: readonly [number, number];
  onPong: () => boolean;
}): PingPongHost {
  const { self, ports } = options;
  const protocol = pingPong(options.onPong);
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
    members: {
      0: { host: "127.0.0.1", port: ports[0] },
      1: { host: "127.0.0.1", port: ports[1] },
    },
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
  return {
    async open() {
      await transport.open();
      await transport.tried();
      host.start();
    },
    ping: (count) => host.command({ type: "ping", count }),
    close: () => transport.close(),
  };
}
