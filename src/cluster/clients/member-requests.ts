/** The HTTP requests about the cluster itself: its members, member changes, and snapshots. */
import { z } from "zod";
import { MAX_STEPS } from "../../protocols/service/coordination-service/member-words.ts";
import { type Given, type HttpRequest, ofQuery, type Served } from "./http-requests.ts";
import { timeoutMs } from "./request-timeout.ts";

const id = z.number("a whole number of 0 or more").int("a whole number").min(0, "a whole number of 0 or more");
const address = z.string('"host:port"').describe("host:port at which the other members reach it");
const within = z.strictObject({ timeoutMs }, "an object");
const query = z.strictObject({ timeoutMs: ofQuery }, "an object");
const member = z.object({
  id,
  address,
  role: z.enum(["voter", "learner", "joining", "leaving"]),
  isLeader: z.boolean(),
});
const change = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("add"), id, address, learner: z.boolean().optional() }),
  z.strictObject({ type: z.literal("promote"), id }),
  z.strictObject({ type: z.literal("remove"), id }),
]);

/** Declares a request that changes the members. The response is sent when the change has been committed. */
const changing = (
  request: Pick<HttpRequest, "method" | "path" | "id" | "summary" | "body">,
  does: (members: Served["members"], given: Given) => Promise<unknown>,
): HttpRequest => ({
  role: "admin",
  answer: z.object({}),
  otherwise: { 404: "No member has this id.", 409: "Another change is in progress, or the id is taken." },
  ...request,
  async answered({ members }, given) {
    await does(members, given);
    return {};
  },
});

/** All HTTP requests about the cluster itself. */
export const memberRequests: readonly HttpRequest[] = [
  {
    method: "GET",
    path: "/v1/members",
    id: "members",
    summary: "Lists the members. The read is linearizable.",
    role: "read",
    query,
    answer: z.object({ members: z.array(member) }),
    answered: async ({ members }, given) => ({ members: await members.members(given.query) }),
  },
  changing(
    {
      method: "POST",
      path: "/v1/members",
      id: "addMember",
      summary: "Adds a member. With replaces, another member leaves in the same step.",
      body: z.strictObject(
        { id, address, learner: z.boolean().optional(), replaces: id.optional(), timeoutMs },
        "an object",
      ),
    },
    (members, { body: { id: newcomer, address: at, learner, replaces, ...call } }) => {
      const by = { id: newcomer, address: at };
      return replaces === undefined ? members.add(by, { learner, ...call }) : members.replace(replaces, by, call);
    },
  ),
  changing(
    {
      method: "POST",
      path: "/v1/members/changes",
      id: "changeMembers",
      summary: "Applies several changes atomically. The set of voters changes in one step.",
      body: z.strictObject(
        { changes: z.array(change, "a list of changes").min(1).max(MAX_STEPS), timeoutMs },
        "an object",
      ),
    },
    (members, { body: { changes, ...call } }) => members.change(changes, call),
  ),
  {
    method: "POST",
    path: "/v1/members/settled",
    id: "settled",
    summary: "Returns once all membership changes have taken effect.",
    role: "read",
    body: within,
    answer: z.object({}),
    async answered({ members }, { body }) {
      await members.settled(body);
      return {};
    },
  },
  changing(
    {
      method: "POST",
      path: "/v1/members/{member}/removal",
      id: "removeMember",
      summary: "Removes a member permanently.",
      body: within,
    },
    (members, { params, body }) => members.remove(idIn(params), body),
  ),
  changing(
    {
      method: "POST",
      path: "/v1/members/{member}/promotion",
      id: "promoteMember",
      summary: "Promotes a learner to a voter.",
      body: within,
    },
    (members, { params, body }) => members.promote(idIn(params), body),
  ),
  changing(
    {
      method: "PUT",
      path: "/v1/members/{member}/address",
      id: "moveMember",
      summary: "Moves a member to another address.",
      body: z.strictObject({ address, timeoutMs }, "an object"),
    },
    (members, { params, body: { address: at, ...call } }) => members.move(idIn(params), at, call),
  ),
  changing(
    {
      method: "POST",
      path: "/v1/members/{member}/leadership",
      id: "transfer",
      summary: "Transfers leadership of the log to a member. Returns when that member leads.",
      body: within,
    },
    (members, { params, body }) => members.transfer(idIn(params), body),
  ),
  {
    method: "GET",
    path: "/v1/snapshot",
    id: "snapshot",
    summary: "Returns a linearizable snapshot of all shared state. You can create a new cluster from the file.",
    role: "admin",
    query,
    answer: z.string(),
    media: "application/x-coterie-snapshot",
    answered: ({ members }, { query }) => members.snapshot(query),
  },
];

/** Parses a member id. Invalid text becomes NaN, which is refused as an id. */
const idIn = ({ member: text = "" }: Readonly<Record<string, string>>): number =>
  /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
