-- Coroutines, full stacks of both kinds, strings that are large, collections of garbage.
local function deep(n) return 1 + deep(n + 1) end
print(select(2, pcall(deep, 0)):match("stack overflow"))
local nested = string.rep("(", 300) .. "a" .. string.rep(")", 300)
print(pcall(string.find, "a", nested))
local sum, threads = 0, {}
for i = 1, 100 do
  threads[i] = coroutine.wrap(function()
    for j = 1, 20 do
      local text = string.rep("x", 2000 * j + i)
      coroutine.yield(#text)
    end
  end)
end
for _ = 1, 20 do for _, thread in ipairs(threads) do sum = sum + thread() end end
collectgarbage()
print(sum, select(2, pcall(function() local t = nil; return t.x end)):match("attempt to index"))
os.exit(7)
