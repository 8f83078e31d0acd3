/**
 * OpenAPI 3.1 of the HTTP pages, from the shapes that parse requests. Not `@hono/zod-openapi`: its validators do not limit
 * the size of bodies.
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
      description: "What is known of a call that had no answer, such as never-sent, or uncertain.",
    },
  },
};
const failures = (of: Readonly<Record<number, string>>): Record<string, object> =>
  Object.fromEntries(Object.entries(of).map(([status, description]) => [status, { description, ...json(failure) }]));

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
      title: "Coterie: clients that are no members",
      version,
      description: "What the members of a cluster share, over HTTP. Any member answers; reads are linearizable.",
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
    description: `Takes the role ${role}.`,
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
    timeoutMs: { type: "integer", description: "Locks only: how long to wait at most." },
    silenceMs: {
      type: "integer",
      description: "The caller says at least so often that it lives: PUT /v1/sessions/{session}.",
    },
  },
};
const lines = (description: string) => ({
  200: { description, content: { "application/x-ndjson": { schema: { type: "object" } } } },
  ...failures(heldErrors),
});

/** Requests that last as long as their connection. */
const streams = {
  "/v1/maps/{map}/watch": {
    get: {
      operationId: "watch",
      summary: "Every change of a map as a server-sent event, in order, without gap.",
      description: "Takes the role read. Last-Event-ID goes on where an earlier connection ended.",
      parameters: [...named("map"), ...inQuery(watchQuery), { name: "Last-Event-ID", in: "header", schema: text }],
      responses: {
        200: {
          description: "Events `change`; an event `error`, with the fields of an error, is the last.",
          content: { "text/event-stream": { schema: schema(change, "output") } },
        },
        ...failures(streamErrors),
      },
    },
  },
  "/v1/locks/{lock}": {
    post: {
      operationId: "lock",
      summary: "Waits for a lock, and holds it for as long as the connection lasts.",
      parameters: named("lock"),
      requestBody: { required: true, ...json(wish) },
      responses: lines("What happens, a line each: waiting, granted, certain, lost, released, refused."),
    },
  },
  "/v1/elections/{election}": {
    post: {
      operationId: "lead",
      summary: "Campaigns, and leads for as long as the connection lasts.",
      parameters: named("election"),
      requestBody: { required: true, ...json(wish) },
      responses: lines("What happens, a line each: waiting, granted, certain, lost, released, refused."),
    },
  },
  "/v1/sessions/{session}": {
    put: {
      operationId: "keepAlive",
      summary: "The caller lives.",
      parameters: named("session"),
      responses: { 200: { description: "Noted." }, ...failures(streamErrors) },
    },
    delete: {
      operationId: "release",
      summary: "The caller is done: what it held is given back.",
      parameters: named("session"),
      responses: { 200: { description: "It has been given back." }, ...failures(streamErrors) },
    },
  },
};
