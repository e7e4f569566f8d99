// The token of the link stands behind the #: it is sent once, in a request body, and removed from the address.
const message = document.getElementById("entry");

async function signIn() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) {
    message.textContent = "Open the link that `clew web` printed in your terminal. Each time clew is started, it prints a new one.";
    return;
  }
  message.textContent = "Signing in …";
  const response = await fetch("/enter", {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Clew": "1" },
    body: JSON.stringify({ token }),
  });
  if (response.ok) {
    history.replaceState(null, "", "/enter");
    location.replace("/");
  } else {
    message.textContent = "This link was used already. `clew web` printed a new one in your terminal.";
  }
}

async function signInOrExplain() {
  try {
    await signIn();
  } catch {
    message.textContent = "clew does not answer. Start `clew web` again.";
  }
}

// A link that is opened in the tab of this page changes the part behind the #, and loads nothing.
addEventListener("hashchange", signInOrExplain);
signInOrExplain();
