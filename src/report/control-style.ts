// The part of the style sheet for what a page of a server has and a file has not: states of what goes on, and a form. Pure.

export const CONTROL_STYLE = `
.state{font-weight:600}
.state.good{color:var(--good)}
.state.warn{color:var(--warn)}
.state.bad{color:var(--bad)}
th>small,td>small,td>details{display:block;margin:0;max-width:24rem}
small>bdi{display:inline}
td>details>bdi{display:block;margin-top:.25rem}
body form{display:flex;flex-wrap:wrap;align-items:end;gap:.5rem 1rem;margin:0 0 1rem}
body form label{color:var(--soft);font-size:.9rem}
body form input{display:block}
body form input,body form button{font:inherit;color:inherit;background:var(--paper);border:1px solid var(--soft);border-radius:4px;padding:.3rem .6rem}
body form button{background:var(--wash);cursor:pointer}
body form :focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.choices{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin:0 0 1rem;padding:0;list-style:none}
.choices [aria-current]{color:var(--ink);font-weight:600;text-decoration:none}
@media (max-width:45rem){
:is(th,td)>small{max-width:11rem}
td>details{width:16rem}
}
@media print{form,.choices,.renewal{display:none}}
`;
