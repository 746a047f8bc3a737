"""A session with ckpt-mcp by the Python SDK's client: session.py PROGRAM STORE.

Once by the handshake of the older revisions of the protocol, once as the newest one goes.
"""

import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client


def server(*options):
    program, store = sys.argv[1:3]
    return stdio_client(StdioServerParameters(command=program, args=["--store", store, *options]))


async def done(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    return result.structured_content


async def session(mode, key):
    async with Client(server("--agent", "python"), mode=mode) as client:
        tools = await client.list_tools()
        names = [tool.name for tool in tools.tools]
        assert names == ["begin", "report", "decide", "resume", "effect", "approval", "hand_over", "fleet"], names

        begun = await done(client, "begin", key=key, plan=["Wire toggle", "Write tests"])
        assert begun["outcome"] == "begun", begun
        fence = begun["fence"]
        started = [{"op": "step start", "text": "Wire toggle"}]
        await done(client, "report", key=key, fence=fence, operations=started)
        await done(client, "decide", key=key, fence=fence, text="Use CSS", why="no runtime cost")

        mail = {"key": key, "fence": fence, "id": "mail the team"}
        begun = await done(client, "effect", **mail, do="begin", how_to_check="look into the sent mail")
        assert begun["outcome"] == "do", begun
        await done(client, "effect", **mail, do="done", receipt={"id": "m-7"})

        # A task that waits for a person.
        other = await done(client, "begin", key=f"{key}-pay", plan=["Pay the invoice"])
        ask, own = {"key": f"{key}-pay", "id": "invoice 7"}, {"fence": other["fence"]}
        asked = await done(client, "approval", **ask, **own, action={"pay": "ann", "cents": 50})
        assert asked["status"] == "pending" and "ckpt approve" in asked["decide_with"], asked
        refused = await client.call_tool("effect", {**ask, **own, "do": "begin", "action": "pay"})
        assert refused.is_error and "another action" in refused.content[0].text, refused
        assert (await done(client, "approval", **ask))["status"] == "pending"

        refused = await client.call_tool("report", {"key": key, "fence": fence + 1, "operations": started})
        assert refused.is_error and refused.content[0].text.startswith("fenced: "), refused

        page = await client.read_resource(f"ckpt://prompt/{key}")
        assert "Use CSS" in page.contents[0].text, page
        prompt = await client.get_prompt("resume", {"key": key})
        assert "Use CSS" in prompt.messages[0].content.text, prompt
        guide = await client.read_resource("ckpt://guide/task")
        assert guide.contents[0].text.startswith("# "), guide
        await done(client, "hand_over", key=key, fence=fence, to="other")

    # Another client, in a process of its own.
    async with Client(server("--agent", "other"), mode=mode) as client:
        found = await done(client, "begin", key=key)
        assert found["outcome"] == "found", found
        assert found["next"] == "Wire toggle", found
        carried_on = await done(client, "begin", key=key, carry_on=True)
        rest = [{"op": "step done", "text": "Wire toggle"}, {"op": "step done", "text": "Write tests"}, {"op": "complete"}]
        await done(client, "report", key=key, fence=carried_on["fence"], operations=rest)
        fleet = await done(client, "fleet")
        assert any(task["key"] == key and task["percent"] == 100 for task in fleet["tasks"]), fleet


async def main():
    await session("legacy", "US-003")
    await session("auto", "US-004")
    print("the session went as it should")


anyio.run(main)
