"""Lua scripts: what has to be atomic for all routers runs in Redis, in one round trip.

Times are those of the Redis server, so that the clocks of routers do not matter.
"""

BUCKET = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local function level(key, rate, size)
  local kept = redis.call('HMGET', key, 'level', 'at')
  if not kept[1] then return size end
  return math.min(size, kept[1] + math.max(0, now - kept[2]) * rate)
end
local function keep(key, level, rate, size)
  redis.call('HSET', key, 'level', string.format('%.6f', level), 'at', string.format('%.6f', now))
  redis.call('PEXPIRE', key, math.ceil((size - level) / rate * 1000) + 1000)
end
"""
"""A token bucket (`access/accounts.py`): a missing key is a full bucket, and a full one expires."""

RESERVE = (
    BUCKET
    + """
local characters, used, levels = tonumber(ARGV[2]), 0, {}
if ARGV[1] ~= '' then
  used = tonumber(redis.call('HGET', KEYS[1], 'characters:' .. ARGV[1]) or 0)
  if ARGV[3] ~= '' and used + characters > tonumber(ARGV[3]) then return {'quota', used} end
end
for i, what in ipairs({'requests', 'characters'}) do
  local rate, size = tonumber(ARGV[3 + 2 * i]), tonumber(ARGV[4 + 2 * i])
  if rate > 0 then
    levels[i] = level(KEYS[i + 1], rate, size)
    if levels[i] < 1 then return {what, math.ceil((1 - levels[i]) / rate)} end
  end
end
for i, found in pairs(levels) do
  keep(KEYS[i + 1], found - (i == 1 and 1 or characters), tonumber(ARGV[3 + 2 * i]), tonumber(ARGV[4 + 2 * i]))
end
if ARGV[1] ~= '' then
  used = redis.call('HINCRBY', KEYS[1], 'characters:' .. ARGV[1], characters)
  redis.call('HINCRBY', KEYS[1], 'requests:' .. ARGV[1], 1)
  redis.call('EXPIREAT', KEYS[1], ARGV[4])
end
return {'admitted', used}
"""
)
"""KEYS: usage of the period, bucket of requests, bucket of characters.
ARGV: key's name (empty: usage is not counted), characters, limit (empty: none), expiry of the period, rate and size
of each bucket (rate 0: no limit). Answers what is exceeded or `admitted`; and characters, or seconds to wait."""

APPLY = (
    BUCKET
    + """
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then return {} end
redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
local totals = {}
for i = 1, (#KEYS - 1) / 2 do
  local usage, bucket, at = KEYS[2 * i], KEYS[2 * i + 1], 7 * i - 4
  local name, taken, rate, size = ARGV[at], tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  totals[i] = redis.call('HINCRBY', usage, 'characters:' .. name, ARGV[at + 1])
  if totals[i] < 0 then
    totals[i] = 0
    redis.call('HSET', usage, 'characters:' .. name, 0)
  end
  redis.call('HINCRBY', usage, 'requests:' .. name, ARGV[at + 2])
  redis.call('EXPIREAT', usage, ARGV[at + 3])
  if rate > 0 and taken ~= 0 then
    keep(bucket, math.min(size, level(bucket, rate, size) - taken), rate, size)
  end
end
return totals
"""
)
"""KEYS: number of the last batch of this run of a router; then usage of the period and bucket of characters of each
item. ARGV: number of this batch, seconds to remember it; then of each item the key's name, characters, requests,
expiry of the period, characters to take from the bucket, its rate and its size. A number that is not higher than the
last was applied before: nothing happens."""

KEEP_GLOSSARY = """
local revision = redis.call('HGET', KEYS[1], 'revision')
if ARGV[2] == '' then
  if redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[6]) then return 'full' end
elseif not revision then return 'missing'
elseif revision ~= ARGV[2] then return 'changed' end
redis.call('HSET', KEYS[1], 'revision', ARGV[3], 'document', ARGV[5])
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'owner', ARGV[7]) end
redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
return 'kept'
"""
"""KEYS: the glossary, the outlines of all. ARGV: id, revision that is replaced (empty: a new glossary), new revision,
outline, document, maximum number of glossaries, owner (empty: none)."""
