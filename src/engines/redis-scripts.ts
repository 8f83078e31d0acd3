/**
 * What Redis runs whole. KEYS[1] is the prefix, in braces. Of each engine there are: `entries`, a hash of `REVISION VALUE`; `keys`, all
 * of them in order; `changes`, a sorted set of `REVISION WRITES` of maps; `length`, of those; `revision`; `forgotten`; and `session:ID`, which expire.
 */
const NAMED = `
local function named(what) return KEYS[1] .. ':' .. what end
local function revision() return tonumber(redis.call('GET', named('revision')) or '0') end
`;

const texts = {
  get: "return redis.call('HGET', named('entries'), ARGV[1])",
  range: `
local answer = { string.format('%d', revision()) }
local keys = redis.call('ZRANGEBYLEX', named('keys'), '[' .. ARGV[1], '(' .. ARGV[2], 'LIMIT', 0, ARGV[3])
for _, key in ipairs(keys) do
  answer[#answer + 1] = key
  answer[#answer + 1] = redis.call('HGET', named('entries'), key)
end
return answer`,
  commit: `
local asked = cjson.decode(ARGV[1])
local kept, keptLength = tonumber(ARGV[2]), tonumber(ARGV[3])
for _, check in ipairs(asked.checks) do
  local entry = redis.call('HGET', named('entries'), check.key)
  local at = entry and tonumber(string.match(entry, '^%d+')) or 0
  if at ~= check.revision then return '-1' end
end
if #asked.writes == 0 then return string.format('%d', revision()) end
local at = redis.call('INCR', named('revision'))
local text = string.format('%d', at)
local logged = {}
for _, write in ipairs(asked.writes) do
  if write.value == cjson.null then
    redis.call('HDEL', named('entries'), write.key)
    redis.call('ZREM', named('keys'), write.key)
  else
    redis.call('HSET', named('entries'), write.key, text .. ' ' .. write.value)
    redis.call('ZADD', named('keys'), 0, write.key)
  end
  if string.sub(write.key, 1, 2) == 'm/' then logged[#logged + 1] = write end
end
local length = tonumber(redis.call('GET', named('length')) or '0')
if #logged > 0 then
  local line = text .. ' ' .. cjson.encode(logged)
  redis.call('ZADD', named('changes'), at, line)
  length = length + #line
end
local forgotten = math.max(tonumber(redis.call('GET', named('forgotten')) or '0'), at - kept)
while true do
  local oldest = redis.call('ZRANGE', named('changes'), 0, 0, 'WITHSCORES')
  local score = tonumber(oldest[2])
  if not score or score == at or (score > at - kept and length <= keptLength) then break end
  redis.call('ZREM', named('changes'), oldest[1])
  length = length - #oldest[1]
  forgotten = math.max(forgotten, score)
end
redis.call('SET', named('length'), string.format('%d', length))
redis.call('SET', named('forgotten'), string.format('%d', forgotten))
redis.call('PUBLISH', KEYS[1], text)
return text`,
  changes: `
local answer = { string.format('%d', revision()), redis.call('GET', named('forgotten')) or '0' }
for _, line in ipairs(redis.call('ZRANGEBYSCORE', named('changes'), '(' .. ARGV[1], '+inf')) do answer[#answer + 1] = line end
return answer`,
  revision: "return string.format('%d', revision())",
  openSession: `
local at = redis.call('INCR', named('revision'))
local now = redis.call('TIME')
local ms = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000)
local id = string.format('%d', ms * 1000 + at % 1000) -- A session that a restore lost has another number.
redis.call('SET', named('session:' .. id), ARGV[1], 'PX', ARGV[1])
return id`,
  keepAlive: `
local session = named('session:' .. ARGV[1])
local ttl = redis.call('GET', session)
if not ttl then return 0 end
return redis.call('PEXPIRE', session, ttl)`,
  endSession: `
redis.call('DEL', named('session:' .. ARGV[1]))
redis.call('PUBLISH', KEYS[1], '')
return 1`,
  living: `
local answer = {}
for _, id in ipairs(ARGV) do
  if redis.call('EXISTS', named('session:' .. id)) == 1 then answer[#answer + 1] = id end
end
return answer`,
} as const;

export type RedisScript = keyof typeof texts;

export const redisScripts = Object.fromEntries(
  Object.entries(texts).map(([name, text]) => [name, NAMED + text]),
) as Readonly<Record<RedisScript, string>>;
