/** The tables and functions that PostgreSQL keeps for us, made where they are not there yet. */

/** Any number of processes may make them at once: a lock of the transaction puts them in order. Sent as one, it is one transaction. */
export const schemaText = (schema: string): string => `
select pg_advisory_xact_lock(hashtext('coterie ${schema}'));
create schema if not exists "${schema}";
create table if not exists "${schema}".head (one boolean primary key default true check (one), revision bigint not null, forgotten bigint not null, length bigint not null default 0);
insert into "${schema}".head values (true, 0, 0) on conflict do nothing;
create table if not exists "${schema}".entries (key text collate "C" primary key, value text not null, revision bigint not null);
create table if not exists "${schema}".changes (revision bigint, key text collate "C", value text, primary key (revision, key));
create table if not exists "${schema}".sessions (id bigint primary key, ttl interval not null, expires timestamptz not null);

${commitText(schema)}

create or replace function "${schema}".open_session(ttl_ms double precision) returns bigint language plpgsql as $body$
declare
  at bigint;
  id bigint;
  ttl interval := ttl_ms * interval '1 millisecond';
begin
  update "${schema}".head set revision = revision + 1 returning revision into at;
  id := floor(extract(epoch from clock_timestamp()) * 1000) * 1000 + at % 1000; -- A session that a restore lost has another number.
  insert into "${schema}".sessions values (id, ttl, clock_timestamp() + ttl);
  return id;
end $body$;

create or replace function "${schema}".end_session(session bigint) returns void language sql as $body$
  delete from "${schema}".sessions where id = session;
  select pg_notify('${schema}', '');
$body$;

create or replace function "${schema}".living(asked bigint[]) returns setof bigint language plpgsql as $body$
begin
  delete from "${schema}".sessions where id = any(asked) and expires <= clock_timestamp();
  return query select id from "${schema}".sessions where id = any(asked);
end $body$;
`;

/** What is remembered of changes is cut off from its older end. */
const commitText = (schema: string): string => `
create or replace function "${schema}".commit(checks jsonb, writes jsonb, kept bigint, kept_length bigint) returns bigint language plpgsql as $body$
declare
  at bigint;
  known bigint;
  total bigint;
  gone bigint;
  oldest bigint;
begin
  select revision, forgotten, length into at, known, total from "${schema}".head for update;
  perform 1 from jsonb_to_recordset(checks) as c(key text, revision bigint)
    where coalesce((select e.revision from "${schema}".entries as e where e.key = c.key), 0) <> c.revision;
  if found then return null; end if;
  if jsonb_array_length(writes) = 0 then return at; end if;
  at := at + 1;
  insert into "${schema}".entries select w.key, w.value, at from jsonb_to_recordset(writes) as w(key text, value text)
    where w.value is not null on conflict (key) do update set value = excluded.value, revision = excluded.revision;
  delete from "${schema}".entries as e using jsonb_to_recordset(writes) as w(key text, value text)
    where w.value is null and e.key = w.key;
  insert into "${schema}".changes select at, w.key, w.value from jsonb_to_recordset(writes) as w(key text, value text)
    where starts_with(w.key, 'm/');
  select total + coalesce(sum(octet_length(c.key) + coalesce(octet_length(c.value), 0)), 0) into total
    from "${schema}".changes as c where c.revision = at;
  known := greatest(known, at - kept);
  loop
    select min(c.revision) into oldest from "${schema}".changes as c;
    exit when oldest is null or oldest = at or (oldest > known and total <= kept_length);
    with deleted as (delete from "${schema}".changes as c where c.revision = oldest returning c.key, c.value)
      select sum(octet_length(d.key) + coalesce(octet_length(d.value), 0)) into gone from deleted as d;
    total := total - gone;
    known := greatest(known, oldest);
  end loop;
  update "${schema}".head set revision = at, forgotten = known, length = total;
  perform pg_notify('${schema}', '');
  return at;
end $body$;`;
