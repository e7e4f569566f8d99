// The link's secret is behind the #: it is sent once, in the body, and taken out of the address.
const said = document.getElementById("entry");
const token = new URLSearchParams(location.hash.slice(1)).get("token");
const wanted = new URLSearchParams(location.search).get("to") || "/";

async function enter() {
  if (!token) {
    said.textContent = "Open the link that `clew web` printed in your terminal.";
    return;
  }
  const answer = await fetch("/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Clew": "1" },
    body: JSON.stringify({ token }),
  });
  if (answer.ok) {
    history.replaceState(null, "", "/enter");
    location.replace(wanted.startsWith("/") && !wanted.startsWith("//") ? wanted : "/");
  } else {
    said.textContent = "This link was used already. `clew web` printed a fresh one in your terminal.";
  }
}

enter().catch(() => { said.textContent = "clew does not answer any more. Start `clew web` again."; });
