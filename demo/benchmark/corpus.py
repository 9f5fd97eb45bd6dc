"""A large script of SQL, the same in every run: statements of eight kinds with seeded variations."""

from __future__ import annotations

import random

STATEMENTS = 320

TEXT = """\
select a.id, a.name as customer, count(b.id) as orders, sum(b.amount * 1.19) as total from customers a
left join orders b on a.id = b.customer_id where a.country = '{word}' and b.amount >= {n}.5
group by a.id, a.name having count(b.id) > {k} order by total desc limit {n};

insert into archive_{k} (id, name, amount, note)
values ({n}, '{word} {k}', {n}.25, 'it''s a note'), ({k}, 'second', 2, null);

update accounts set balance = balance + {n}, state = '{word}', changed = '2020-01-{k}' where id = {n};

delete from sessions where expires < {n} and not (kept = 1 or owner in ('root', '{word}'));

select t.{word}, t.value from (select {word}, max(value) value from samples where run = {n} group by {word}) t
inner join limits l on l.name = t.{word} and l.high > t.value;

create table {word}_{k} (id integer primary key, name varchar(80) not null, amount numeric(10, {k}));

-- {word} {n}
select case when x > {n} then 'big' else 'small' end as size, coalesce(y, {k}) from points;

select distinct region, substring(code, 1, {k}) as prefix from stock where code like '{word}%'
union all select region, code from returned where amount between {k} and {n};
"""
"""The kinds, a blank line between them."""

WORDS = ("amber", "basalt", "copper", "dolomite", "emerald", "feldspar", "granite", "hematite")


def slices(size: int) -> list[str]:
    """The script in parts of so many statements."""
    kinds = TEXT.split("\n\n")
    chosen = random.Random(20240101)  # noqa: S311 - no secret
    script = [
        chosen.choice(kinds).format(word=chosen.choice(WORDS), n=chosen.randint(1, 9999), k=chosen.randint(1, 28))
        for _ in range(STATEMENTS)
    ]
    return ["\n".join(script[first : first + size]) for first in range(0, STATEMENTS, size)]
