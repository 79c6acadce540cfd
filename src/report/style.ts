// The one style sheet of a page. Pure.

import { CONTROL_STYLE } from "./control-style.ts";
import { customProperties, DARK, LIGHT } from "./palette.ts";

/** Paper is always light, and shows what is folded on a screen. */
export const STYLE = `
:root{color-scheme:light dark;${customProperties(LIGHT)}}
@media screen and (prefers-color-scheme:dark){:root{${customProperties(DARK)}}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:70rem;padding:2.5rem 2.5rem 3rem;background:var(--paper);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
h1,h2,h3{line-height:1.2;font-weight:600;letter-spacing:-.01em;text-wrap:balance}
h1{margin:0;font-size:1.9rem}
h2{margin:0 0 .75rem;font-size:1.35rem}
h3{margin:0 0 .75rem;font-size:1rem}
p,ul{margin:0 0 .75rem}
a{color:var(--accent);text-underline-offset:.2em}
a:focus-visible,summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
i{color:var(--soft)}
.subtitle{margin:.35rem 0 1.5rem;color:var(--soft);font-size:1.1rem}
.notice{margin:0 0 1rem;padding:.9rem 1.1rem;border-left:3px solid var(--line);background:var(--wash)}
.notice>:last-child{margin-bottom:0}
.notice ul{padding-left:1.2rem}
.notice.good{border-color:var(--good);background:var(--good-wash)}
.notice.good strong{color:var(--good)}
.notice.bad{border-color:var(--bad);background:var(--bad-wash)}
.notice.bad strong,.flag,.status{color:var(--bad)}
.notice.bad p{margin-top:.5rem}
.status.suspect{color:var(--warn)}
nav{margin:1.5rem 0 0;border-bottom:1px solid var(--line)}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;margin:0;padding:0 0 .75rem;list-style:none}
nav a{text-decoration:none;color:var(--soft)}
nav a:hover{color:var(--accent);text-decoration:underline}
section{padding-top:2.75rem;scroll-margin-top:0}
.note,.empty{color:var(--soft);max-width:46rem}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:1.5rem 2rem;margin:0 0 1rem}
.figures dt{color:var(--soft)}
.figures>div{min-width:0}
.figures dd{margin:0}
.figure{display:block;overflow-wrap:normal;font-size:2rem;line-height:1.25;font-weight:600;letter-spacing:-.02em}
.exact{display:block;font-size:.85rem;overflow-wrap:anywhere}
.change{color:var(--soft)}
figure{margin:0 0 2rem}
.wide,.narrow{display:block;width:100%;height:auto;font-family:inherit}
.narrow{display:none;max-width:28rem}
details{margin:.5rem 0 1rem}
summary{cursor:pointer;color:var(--accent);width:fit-content}
.scroll{overflow-x:auto;margin:.5rem 0 1rem}
table{border-collapse:collapse;width:max-content;min-width:100%;font-size:.9rem}
caption{text-align:left;color:var(--soft);padding:.25rem 0 .5rem}
th,td{padding:.4rem 1.25rem .4rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--line);font-weight:400}
:is(th,td):last-child{padding-right:0}
thead th{color:var(--soft);border-bottom-color:var(--soft);vertical-align:bottom}
.n{text-align:right}
bdi{white-space:pre-wrap}
:is(th,td)>bdi,small>bdi{display:inline-block;vertical-align:top;max-width:22rem}
small{color:var(--soft)}
small.key{display:block;margin:0}
time{white-space:nowrap}
.tags span{display:inline-block;padding:0 .45em;background:var(--wash);border-radius:3px}
.bar{display:block;width:100%;min-width:6rem;height:.7rem;margin-top:.4rem}
.bar rect{fill:var(--accent)}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.9rem}
footer p{max-width:46rem}${CONTROL_STYLE}@media (max-width:45rem){
body{padding:1.5rem 1rem 2rem}
.wide{display:none}
.narrow{display:block}
.figures{grid-template-columns:1fr 1fr;gap:1.25rem}
.figure{font-size:1.6rem}
:is(th,td)>bdi,small>bdi{max-width:10rem}
.bar{width:3.5rem;min-width:3.5rem}
:is(th,td){padding-right:.9rem}
}
@media print{
@page{margin:14mm}
body{max-width:none;padding:0;font-size:10pt}
.figure{font-size:1.5rem}
nav{display:none}
.wide{display:block}
.narrow{display:none}
section{padding-top:1.5rem}
h2,h3,caption,figcaption,.note{break-after:avoid}
.wide,.notice,.note,.figures,tr{break-inside:avoid}
.scroll{overflow:visible}
table{font-size:7pt}
:is(th,td){padding:.12rem .5rem .12rem 0}
.bar{min-width:3rem;margin-top:.15rem}
details::details-content{display:block;content-visibility:visible;block-size:auto}
summary{display:none}
a{color:inherit;text-decoration:none}
.bar,.wide,.status,.notice{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
`;
