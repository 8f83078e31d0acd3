/**
 * A gRPC server whose methods are defined by tables of messages. A call to an unknown method gets UNIMPLEMENTED and the
 * method's name.
 */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { Readable } from "node:stream";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import type * as Grpc from "@grpc/grpc-js";
import { cannotListen } from "../../runtime/cannot-listen.ts";
import type { Pems } from "../../runtime/certificate-files.ts";
import type { HostPort } from "../../runtime/host-port.ts";
import { optionalPackage } from "../../runtime/optional-package.ts";
import type { DoorRoom, Place } from "./door-room.ts";
import { EtcdError } from "./errors.ts";
import type { Leadership } from "./leadership.ts";
import type { Message } from "./protobuf.ts";

/**
 * A bidirectional stream of messages. It ends when `signal` is aborted or the handler returns. A client that has
 * finished sending requests may still read: `requests` ends, but `signal` is not aborted.
 */
export interface Duplex<Q, R> {
  readonly requests: AsyncIterable<Q>;
  readonly signal: AbortSignal;
  /** Resolves once more can be sent. Awaiting it keeps the buffer for a slow reader small. */
  send(response: R): Promise<void>;
  /** Ends the stream with an error, so that the client reconnects. */
  fail(error: unknown): void;
}

/** Handles one request and returns the response. */
export type Handler<Q, R> = (request: Q, signal: AbortSignal) => Promise<R>;
/** Handles a stream of requests and responses. */
export type StreamHandler<Q, R> = (stream: Duplex<Q, R>) => Promise<void>;

/** A method's message types and handler. */
export interface Method {
  readonly request: Message<unknown>;
  readonly response: Message<unknown>;
  readonly handle: Handler<unknown, unknown> | null;
  readonly stream: StreamHandler<unknown, unknown> | null;
  /** Whether the client sends only one request, at the start of the stream. */
  readonly hasOneRequest: boolean;
}

/** Declares a method with one request and one response. */
export const unary = <Q, R>(request: Message<Q>, response: Message<R>, handle: Handler<Q, Partial<R>>): Method => ({
  request,
  response,
  handle: handle as Handler<unknown, unknown>,
  stream: null,
  hasOneRequest: false,
});

/** Declares a method that streams in both directions. */
export const bidirectional = <Q, R>(
  request: Message<Q>,
  response: Message<R>,
  stream: StreamHandler<Q, Partial<R>>,
): Method => ({
  request,
  response,
  handle: null,
  stream: stream as StreamHandler<unknown, unknown>,
  hasOneRequest: false,
});

/** Declares a method that answers one request with a stream. */
export const serverStreaming = <Q, R>(
  request: Message<Q>,
  response: Message<R>,
  tell: (request: Q, stream: Omit<Duplex<Q, Partial<R>>, "requests">) => Promise<void>,
): Method => ({
  ...bidirectional<Q, R>(request, response, async (stream) => {
    for await (const first of stream.requests) await tell(first, stream);
  }),
  hasOneRequest: true,
});

/** Methods, by service name and method name. */
export type Services = Readonly<Record<string, Readonly<Record<string, Method>>>>;

export interface GrpcDoor {
  readonly port: number;
  /** Uses the given certificates for new connections. Open connections are not affected. */
  renew(tls: Pems): void;
  close(): Promise<void>;
}

/** etcd's request size limit, plus some room for the rest of the message. */
export const MAX_REQUEST_BYTES = 1_572_864 + 524_288;
/** The maximum number of streams per connection. */
const MAX_STREAMS = 1_000;
/** How many unread bytes a stream may have before the next message must wait. */
const MAX_UNREAD_OF_STREAM = 262_144;
const UNKNOWN = 2;

/** The start of an HTTP/2 connection, which no HTTP/1 request begins with (RFC 9113 §3.4). */
const HTTP_2 = "PRI";
/** How long a connection may take to show which protocol it uses. */
const PREFACE_MS = 10_000;

export interface GrpcDoorOptions {
  readonly services: Services;
  readonly room: DoorRoom;
  readonly leadership: Pick<Leadership, "require" | "follow">;
  /** The certificates. With `ca`, callers must present a certificate of that authority. Null or absent: no TLS. */
  readonly tls?: Pems | null;
  /** Handles connections that use HTTP/1. */
  onHttp1(socket: Socket): void;
}

/** @throws UsageError `no-library`; EnvironmentError if it cannot listen */
export async function serveGrpc(
  address: HostPort,
  { services, room, leadership, tls = null, onHttp1 }: GrpcDoorOptions,
): Promise<GrpcDoor> {
  const grpc = await library();
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MAX_STREAMS,
  });
  for (const [service, methods] of Object.entries(services)) {
    const definition: Record<string, Grpc.MethodDefinition<unknown, Buffer>> = {};
    const implementation: Record<string, Grpc.UntypedHandleCall> = {};
    for (const [name, method] of Object.entries(methods)) {
      const call = `${service.slice(service.indexOf(".") + 1)}/${name}`;
      definition[name] = definitionOf(`/${service}/${name}`, method, (error) => room.malformed(call, error));
      const enter = (): Place => room.enter(call);
      const fail = (error: unknown): Status => {
        room.fail(error);
        return statusOf(error);
      };
      implementation[name] =
        method.handle === null
          ? answeredStream(method, enter, fail, leadership)
          : answeredCall(method, enter, fail, leadership);
    }
    server.addService(definition, implementation);
  }
  const connections = server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    room.counts.connected = sockets.size;
    socket.once("close", () => {
      sockets.delete(socket);
      room.counts.connected = sockets.size;
    });
    afterPreface(socket, (isHttp2) => (isHttp2 ? connections.injectConnection(socket) : onHttp1(socket)));
  };
  const net = tls === null ? createServer({ noDelay: true }, accept) : createTlsServer(tlsOptions(tls), accept);
  net.maxConnections = room.limits.connections;
  net.on("drop", () => room.noConnection());
  const port = await listening(net, address);
  return {
    port,
    renew: (pems) => void ("setSecureContext" in net && net.setSecureContext({ ...pems })),
    async close() {
      const closed = new Promise((resolve) => net.close(resolve));
      server.forceShutdown();
      for (const socket of sockets) socket.destroySoon(); // The client might never close the connection.
      await closed;
    },
  };
}

/** As etcd with `--client-cert-auth`: a caller without a certificate of the authority is refused in the handshake. */
const tlsOptions = (pems: Pems): TlsOptions => ({
  ...pems,
  noDelay: true,
  requestCert: pems.ca !== undefined,
  rejectUnauthorized: pems.ca !== undefined,
  ALPNProtocols: ["h2", "http/1.1"],
  handshakeTimeout: PREFACE_MS,
});

/** Waits for the first bytes of a connection, which show whether it uses HTTP/2. They remain in the socket. */
function afterPreface(socket: Socket, begin: (isHttp2: boolean) => void): void {
  let seen = Buffer.alloc(0);
  const look = (bytes: Buffer): void => {
    seen = Buffer.concat([seen, bytes]);
    const start = seen.toString("latin1", 0, HTTP_2.length);
    if (start !== HTTP_2 && HTTP_2.startsWith(start)) return;
    socket.off("data", look).off("error", ignore).off("timeout", late).setTimeout(0);
    socket.pause();
    socket.unshift(seen);
    begin(start === HTTP_2);
  };
  const ignore = (): void => {};
  const late = (): void => void socket.destroy();
  socket.on("data", look).on("error", ignore).on("timeout", late).setTimeout(PREFACE_MS);
}

const library = (): Promise<typeof Grpc> =>
  optionalPackage(["@grpc/grpc-js"], "serves etcd's API", () => import("@grpc/grpc-js"));

function listening(server: NetServer, address: HostPort): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(cannotListen(address, "for etcd's API", error)));
    server.listen(address.port, address.host, () => {
      // A connection could not be accepted, for example because no file descriptors were left. The client retries.
      server.on("error", () => {});
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Converts methods to gRPC definitions. Handlers encode their own responses, so that the encoded size is known. */
const definitionOf = (
  path: string,
  { request, stream, hasOneRequest }: Method,
  onMalformed: (error: unknown) => void,
): Grpc.MethodDefinition<unknown, Buffer> => ({
  path,
  requestStream: stream !== null && !hasOneRequest,
  responseStream: stream !== null,
  requestSerialize: (value) => Buffer.from(request.encode(value as object)),
  requestDeserialize: (bytes) => {
    try {
      return request.decode(bytes);
    } catch (error) {
      onMalformed(error);
      throw error;
    }
  },
  responseSerialize: (bytes) => bytes,
  responseDeserialize: (bytes) => bytes,
});

const requiresLeader = (metadata: Grpc.Metadata): boolean => metadata.get("hasleader")[0] === "true";

interface Status {
  readonly code: number;
  readonly details: string;
}
type Enter = () => Place;
type Fail = (error: unknown) => Status;

/**
 * Handles a call with a single response. gRPC emits `cancelled` when a call's stream closes, regardless of the outcome.
 */
const answeredCall =
  (
    method: Method,
    enter: Enter,
    fail: Fail,
    leadership: Pick<Leadership, "require">,
  ): Grpc.handleUnaryCall<unknown, Buffer> =>
  (call, callback) => {
    const controller = new AbortController();
    let isAnswered = false;
    const answer = async (): Promise<void> => {
      try {
        const place = enter();
        call.on("cancelled", () => {
          place.leave();
          if (!isAnswered) controller.abort();
        });
        if (requiresLeader(call.metadata)) leadership.require();
        const response = await (method.handle as Handler<unknown, unknown>)(call.request, controller.signal);
        const bytes = Buffer.from(method.response.encode(response as object));
        place.hold(bytes.length);
        isAnswered = true;
        callback(null, bytes);
      } catch (error) {
        isAnswered = true;
        callback(fail(error));
      }
    };
    void answer();
  };

const answeredStream =
  (
    method: Method,
    enter: Enter,
    fail: Fail,
    leadership: Pick<Leadership, "require" | "follow">,
  ): Grpc.handleBidiStreamingCall<unknown, Buffer> =>
  (call) => {
    const controller = new AbortController();
    const { signal } = controller;
    const waiting: (() => void)[] = [];
    const goOn = (): void => {
      for (const go of waiting.splice(0)) go();
    };
    const end = (): void => {
      controller.abort();
      goOn();
    };
    let unread = 0;
    const send = async (response: unknown): Promise<void> => {
      while (unread >= MAX_UNREAD_OF_STREAM && !signal.aborted)
        await new Promise<void>((resolve) => void waiting.push(resolve));
      if (signal.aborted) return;
      const bytes = Buffer.from(method.response.encode(response as object));
      unread += bytes.length;
      call.write(bytes, () => {
        unread -= bytes.length;
        goOn();
      });
    };
    const failWith = (error: unknown): void => {
      if (!signal.aborted) call.emit("error", fail(error));
    };
    // Iterating over the stream itself would destroy it if the loop threw, and no status could be sent.
    const requests = method.hasOneRequest
      ? Readable.from([(call as unknown as { request: unknown }).request])
      : call.iterator({ destroyOnReturn: false });
    const serve = async (): Promise<void> => {
      try {
        const place = enter();
        call.on("cancelled", () => place.leave());
        call.on("cancelled", end).on("error", end).on("close", end);
        if (requiresLeader(call.metadata)) {
          leadership.require();
          signal.addEventListener("abort", leadership.follow(failWith));
        }
        await (method.stream as StreamHandler<unknown, unknown>)({ requests, signal, send, fail: failWith });
        call.end();
      } catch (error) {
        failWith(error);
      }
    };
    void serve();
  };

/** Returns the gRPC code and text of an error. */
export function statusOf(error: unknown): Status {
  if (error instanceof EtcdError) return { code: error.code, details: error.details };
  return { code: UNKNOWN, details: `coterie: ${error instanceof Error ? error.message : String(error)}` };
}
