/**
 * A gRPC server whose methods are tables of messages. A call of another method is answered with UNIMPLEMENTED and the
 * method's name.
 */
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from "node:net";
import { Readable } from "node:stream";
import type * as Grpc from "@grpc/grpc-js";
import { cannotListen } from "../../runtime/cannot-listen.ts";
import type { HostPort } from "../../runtime/host-port.ts";
import { optionalPackage } from "../../runtime/optional-package.ts";
import type { DoorRoom, Place } from "./door-room.ts";
import { EtcdError } from "./errors.ts";
import type { Leadership } from "./leadership.ts";
import type { Message } from "./protobuf.ts";

/**
 * A stream of messages in both directions. It ends when `signal` is aborted or the handler returns. A client that sends no
 * more requests may still read: then `requests` ends, but `signal` is not aborted.
 */
export interface Duplex<Q, R> {
  readonly requests: AsyncIterable<Q>;
  readonly signal: AbortSignal;
  /** Resolves once more may be sent, so little is buffered for a slow reader. */
  send(response: R): Promise<void>;
  /** Ends the stream with an error, so that the client reconnects. */
  fail(error: unknown): void;
}

export type Handler<Q, R> = (request: Q, signal: AbortSignal) => Promise<R>;
export type StreamHandler<Q, R> = (stream: Duplex<Q, R>) => Promise<void>;

export interface Method {
  readonly request: Message<unknown>;
  readonly response: Message<unknown>;
  readonly handle: Handler<unknown, unknown> | null;
  readonly stream: StreamHandler<unknown, unknown> | null;
  /** Whether its stream has only one request, at the beginning. */
  readonly hasOneRequest: boolean;
}

export const unary = <Q, R>(request: Message<Q>, response: Message<R>, handle: Handler<Q, Partial<R>>): Method => ({
  request,
  response,
  handle: handle as Handler<unknown, unknown>,
  stream: null,
  hasOneRequest: false,
});

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

/** A method that answers one request with a stream. */
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

/** Methods by the names of the service and the method. */
export type Services = Readonly<Record<string, Readonly<Record<string, Method>>>>;

export interface GrpcDoor {
  readonly port: number;
  close(): Promise<void>;
}

/** The limit of etcd, with some space for the rest of the message. */
const MAX_REQUEST_BYTES = 1_572_864 + 524_288;
/** The most streams of one connection. */
const MAX_STREAMS = 1_000;
/** The most unread bytes of a stream, plus one message. */
const MAX_UNREAD_OF_STREAM = 262_144;
const UNKNOWN = 2;

/** @throws UsageError `no-library`; EnvironmentError if it cannot listen there */
export async function serveGrpc(
  address: HostPort,
  services: Services,
  room: DoorRoom,
  leadership: Pick<Leadership, "require" | "follow">,
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
  const net = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    room.counts.connected = sockets.size;
    socket.once("close", () => {
      sockets.delete(socket);
      room.counts.connected = sockets.size;
    });
    connections.injectConnection(socket);
  });
  net.maxConnections = room.limits.connections;
  net.on("drop", () => room.noConnection());
  const port = await listening(net, address);
  return {
    port,
    async close() {
      const closed = new Promise((resolve) => net.close(resolve));
      server.forceShutdown();
      for (const socket of sockets) socket.destroySoon(); // The client may never close it.
      await closed;
    },
  };
}

const library = (): Promise<typeof Grpc> =>
  optionalPackage(["@grpc/grpc-js"], "serves etcd's API", () => import("@grpc/grpc-js"));

function listening(server: NetServer, address: HostPort): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => reject(cannotListen(address, "for etcd's API", error)));
    server.listen(address.port, address.host, () => {
      server.on("error", () => {}); // A caller was not accepted, such as for lack of descriptors: it will retry.
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Responses are encoded by their handlers, so that their length is known. */
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

/** A call is over once its stream has closed: `cancelled` reports this for every outcome. */
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
    // A loop over a stream destroys it when the loop ends with an error: then no status could be sent.
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

function statusOf(error: unknown): Status {
  if (error instanceof EtcdError) return { code: error.code, details: error.details };
  return { code: UNKNOWN, details: `coterie: ${error instanceof Error ? error.message : String(error)}` };
}
