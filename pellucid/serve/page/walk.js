export function drawWalk(body) { return ""; }
