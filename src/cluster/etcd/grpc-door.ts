/** A server of gRPC whose methods are tables of messages. What is not in them is answered with UNIMPLEMENTED and the method's name. */
import { Readable } from "node:stream";
import type * as Grpc from "@grpc/grpc-js";
import { EnvironmentError, UsageError } from "../../core/errors.ts";
import { formatHostPort, type HostPort } from "../../runtime/host-port.ts";
import { EtcdError } from "./errors.ts";
import type { Message } from "./protobuf.ts";

/** A stream of messages in both directions, which ends when `signal` is aborted or the handler is done. */
export interface Duplex<Q, R> {
  readonly requests: AsyncIterable<Q>;
  readonly signal: AbortSignal;
  /** Resolves once more may be sent: who reads slowly has little waiting for it. */
  send(response: R): Promise<void>;
}

export type Handler<Q, R> = (request: Q, signal: AbortSignal) => Promise<R>;
export type StreamHandler<Q, R> = (stream: Duplex<Q, R>) => Promise<void>;

export interface Method {
  readonly request: Message<unknown>;
  readonly response: Message<unknown>;
  readonly handle: Handler<unknown, unknown> | null;
  readonly stream: StreamHandler<unknown, unknown> | null;
  /** Whether its stream begins with one request, and has no more. */
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

/** Answers one request with a stream. */
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

/** By the name of the service, and of the method. */
export type Services = Readonly<Record<string, Readonly<Record<string, Method>>>>;

export interface GrpcDoor {
  readonly port: number;
  close(): Promise<void>;
}

/** As etcd has it; a little more for what is around a request. */
const MAX_REQUEST_BYTES = 1_572_864 + 524_288;
const MAX_STREAMS = 1_000;
const UNKNOWN = 2;
const PACKAGE = "@grpc/grpc-js";

/** @throws UsageError `no-library`; EnvironmentError if it cannot listen there */
export async function serveGrpc(address: HostPort, services: Services): Promise<GrpcDoor> {
  const grpc = await library();
  const server = new grpc.Server({
    "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MAX_STREAMS,
  });
  for (const [service, methods] of Object.entries(services)) {
    const definition: Record<string, Grpc.MethodDefinition<unknown, unknown>> = {};
    const implementation: Record<string, Grpc.UntypedHandleCall> = {};
    for (const [name, method] of Object.entries(methods)) {
      definition[name] = definitionOf(`/${service}/${name}`, method);
      implementation[name] = method.handle === null ? answeredStream(method) : answeredCall(method.handle);
    }
    server.addService(definition, implementation);
  }
  const port = await listening(server, grpc.ServerCredentials.createInsecure(), address);
  return {
    port,
    close: () => {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}

async function library(): Promise<typeof Grpc> {
  try {
    return await import("@grpc/grpc-js");
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    const text = `expected the package ${PACKAGE} to be installed, which serves etcd's API: npm install ${PACKAGE}`;
    throw new UsageError("no-library", text, { cause: error });
  }
}

function listening(server: Grpc.Server, credentials: Grpc.ServerCredentials, address: HostPort): Promise<number> {
  const place = formatHostPort(address);
  return new Promise((resolve, reject) => {
    server.bindAsync(place, credentials, (error, port) => {
      if (error === null) return resolve(port);
      reject(new EnvironmentError("cannot-listen", `cannot serve etcd's API at ${place}: ${error.message}`));
    });
  });
}

const definitionOf = (
  path: string,
  { request, response, stream, hasOneRequest }: Method,
): Grpc.MethodDefinition<unknown, unknown> => ({
  path,
  requestStream: stream !== null && !hasOneRequest,
  responseStream: stream !== null,
  requestSerialize: (value) => Buffer.from(request.encode(value as object)),
  requestDeserialize: (bytes) => request.decode(bytes),
  responseSerialize: (value) => Buffer.from(response.encode(value as object)),
  responseDeserialize: (bytes) => response.decode(bytes),
});

const answeredCall =
  (handle: Handler<unknown, unknown>): Grpc.handleUnaryCall<unknown, unknown> =>
  (call, callback) => {
    const controller = new AbortController();
    call.on("cancelled", () => controller.abort());
    handle(call.request, controller.signal).then(
      (response) => callback(null, response),
      (error: unknown) => callback(statusOf(error)),
    );
  };

const answeredStream =
  ({ stream, hasOneRequest }: Method): Grpc.handleBidiStreamingCall<unknown, unknown> =>
  (call) => {
    const requests = hasOneRequest ? Readable.from([(call as unknown as { request: unknown }).request]) : call;
    const controller = new AbortController();
    const end = (): void => controller.abort();
    call.on("cancelled", end).on("error", end).on("close", end);
    const send = async (response: unknown): Promise<void> => {
      if (controller.signal.aborted || call.write(response)) return;
      await new Promise<void>((resolve) => {
        const go = (): void => {
          call.off("drain", go);
          controller.signal.removeEventListener("abort", go);
          resolve();
        };
        call.on("drain", go);
        controller.signal.addEventListener("abort", go);
      });
    };
    (stream as StreamHandler<unknown, unknown>)({ requests, signal: controller.signal, send }).then(
      () => call.end(),
      (error: unknown) => {
        if (!controller.signal.aborted) call.emit("error", statusOf(error));
      },
    );
  };

function statusOf(error: unknown): { code: number; details: string } {
  if (error instanceof EtcdError) return { code: error.code, details: error.details };
  return { code: UNKNOWN, details: `coterie: ${error instanceof Error ? error.message : String(error)}` };
}
