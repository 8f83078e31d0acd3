/**
 * Generates the OpenAPI 3.1 description of the HTTP pages from the shapes that parse requests. `@hono/zod-openapi` is
 * not used, because its validators do not limit the size of bodies.
 */
import { z } from "zod";
import { changeErrors, coordinationErrors, heldErrors, streamErrors } from "./http-errors.ts";
import { change, type HttpRequest, httpRequests } from "./http-requests.ts";
import { memberRequests } from "./member-requests.ts";
import { watchQuery } from "./watch-page.ts";

const schema = (of: z.ZodType, io: "input" | "output"): object => {
  const { $schema: _schema, ...rest } = z.toJSONSchema(of, { io, unrepresentable: "any" }) as Record<string, unknown>;
  return rest;
};

const json = (of: object) => ({ content: { "application/json": { schema: of } } });
const failure = {
  type: "object",
  required: ["error", "code"],
  properties: {
    error: { type: "string" },
    code: { type: "string" },
    phase: {
      type: "string",
      description: "Whether the call may have taken effect: for example, never-sent or uncertain.",
    },
  },
};
const failures = (of: Readonly<Record<number, string>>): Record<string, object> =>
  Object.fromEntries(Object.entries(of).map(([status, description]) => [status, { description, ...json(failure) }]));

/** @returns the document for `/openapi.json` */
export function openApi(version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const request of [...httpRequests, ...memberRequests]) {
    const at = paths[request.path] ?? {};
    paths[request.path] = at;
    at[request.method.toLowerCase()] = described(request);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Coterie: client API",
      version,
      description: "A cluster's shared state, over HTTP. Every member can answer requests. Reads are linearizable.",
    },
    paths: { ...paths, ...streams },
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }, {}],
  };
}

function described(request: HttpRequest): object {
  const { id, path, summary, role, query, body, answer, media = "application/json", otherwise = {} } = request;
  return {
    operationId: id,
    summary,
    description: `Requires the role ${role}.`,
    parameters: [...inPath(path), ...inQuery(query)],
    ...(body === undefined ? {} : { requestBody: { required: true, ...json(schema(body, "input")) } }),
    responses: {
      200: { description: "Done.", content: { [media]: { schema: schema(answer, "output") } } },
      ...failures({ ...coordinationErrors, ...(role === "read" ? {} : changeErrors), ...otherwise }),
    },
  };
}

const inPath = (path: string): object[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));

const inQuery = (query: z.ZodObject | undefined): object[] =>
  Object.entries(query?.shape ?? {}).map(([name, of]) => ({
    name,
    in: "query",
    schema: schema(of as z.ZodType, "input"),
  }));

const text = { type: "string" };
const named = (name: string) => [{ name, in: "path", required: true, schema: text }];
const wish = {
  type: "object",
  properties: {
    timeoutMs: { type: "integer", description: "Locks only: maximum time to wait." },
    silenceMs: {
      type: "integer",
      description: "The caller must renew the session within this time: PUT /v1/sessions/{session}.",
    },
  },
};
const lines = (description: string) => ({
  200: { description, content: { "application/x-ndjson": { schema: { type: "object" } } } },
  ...failures(heldErrors),
});

/** The description of requests that last as long as their connection. */
const streams = {
  "/v1/maps/{map}/watch": {
    get: {
      operationId: "watch",
      summary: "Every change to a map as a server-sent event, in order and without gaps.",
      description: "Requires the role read. Last-Event-ID resumes the stream of an earlier connection.",
      parameters: [...named("map"), ...inQuery(watchQuery), { name: "Last-Event-ID", in: "header", schema: text }],
      responses: {
        200: {
          description:
            "`change` events. If the watch fails, the last event is `error`, with the fields of an error response.",
          content: { "text/event-stream": { schema: schema(change, "output") } },
        },
        ...failures(streamErrors),
      },
    },
  },
  "/v1/locks/{lock}": {
    post: {
      operationId: "lock",
      summary: "Waits for a lock, and holds it as long as the connection is open.",
      parameters: named("lock"),
      requestBody: { required: true, ...json(wish) },
      responses: lines("One event per line: waiting, granted, certain, lost, released, refused."),
    },
  },
  "/v1/elections/{election}": {
    post: {
      operationId: "lead",
      summary: "Campaigns, and leads as long as the connection is open.",
      parameters: named("election"),
      requestBody: { required: true, ...json(wish) },
      responses: lines("One event per line: waiting, granted, certain, lost, released, refused."),
    },
  },
  "/v1/sessions/{session}": {
    put: {
      operationId: "keepAlive",
      summary: "Renews the session.",
      parameters: named("session"),
      responses: { 200: { description: "The session has been renewed." }, ...failures(streamErrors) },
    },
    delete: {
      operationId: "release",
      summary: "Ends the session, and releases its lock or leadership.",
      parameters: named("session"),
      responses: { 200: { description: "The session has ended." }, ...failures(streamErrors) },
    },
  },
};
